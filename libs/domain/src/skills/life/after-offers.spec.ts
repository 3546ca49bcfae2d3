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

  it('keeps what is only loaded from pruning, and from what is never used', async () => {
    const input = { tenant: 'acme', agent: null, policy: { unusedDays: 30 }, pruneId: 'p1', by: 'ann', dryRun: true, at: AT };
    const { pruned } = await pruneSkills(input, new Shelf(loaded, shown));
    expect(pruned.map(({ skill, reason }) => `${skill.name}: ${reason}`)).toEqual(['shown: not used for 100 days']);
    expect((await skillStats([loaded, shown])).unused.map(({ name }) => name)).toEqual(['shown']);
  });
});
