import { describe, expect, it } from 'vitest';
import { NEW_YEAR, SCOPE } from '../../../test/memory-records.js';
import { DAY_MS, provenSkill, Shelf } from '../../../test/hygiene-fixture.js';
import { pruneSkills } from './prune.js';
import { skillStats } from './usage.js';
import { afterOffers } from './usage.js';

const AT = NEW_YEAR + 100 * DAY_MS;
const offerOf = (name: string) => ({ ...SCOPE, name, version: 1 });

describe('afterOffers', () => {
  const loaded = afterOffers(provenSkill('loaded'), [{ ...offerOf('loaded'), loadedAt: AT - DAY_MS }, offerOf('loaded')]);
  const shown = afterOffers(provenSkill('shown'), [offerOf('shown')]);

  it('counts a load as one offer and no use', () => {
    expect(loaded.usage).toMatchObject({ offered: 1, used: 0, lastUsedAt: AT - DAY_MS });
    expect(shown.usage).toMatchObject({ offered: 1, used: 0, lastUsedAt: null });
    expect(afterOffers(shown, [])).toBe(shown);
  });

  it('keeps what is only loaded from pruning, and from what is never used', async () => {
    const input = { tenant: 'acme', agent: null, policy: { unusedDays: 30 }, pruneId: 'p1', by: 'ann', dryRun: true, at: AT };
    const { pruned } = await pruneSkills(input, new Shelf(loaded, shown));
    expect(pruned.map(({ skill, reason }) => `${skill.name}: ${reason}`)).toEqual(['shown: not used for 100 days']);
    expect((await skillStats([loaded, shown])).unused.map(({ name }) => name)).toEqual(['shown']);
  });

  it('moves the last use forward alone', () => {
    const later = afterOffers(loaded, [{ ...offerOf('loaded'), loadedAt: AT }]);
    const earlier = afterOffers(later, [{ ...offerOf('loaded'), loadedAt: 1 }]);
    expect([later, earlier].map(({ usage }) => usage?.lastUsedAt)).toEqual([AT, AT]);
  });
});
