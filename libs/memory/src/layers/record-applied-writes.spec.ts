import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { newSkill } from '@etude/domain/skills/life/skill-life';
import { episodeOf, factOf, SCOPE, skillOf, skillUseOf, transitionOf } from '@etude/domain/testing/memory-records';
import { describe, expect, it } from 'vitest';
import { dyingStore } from '../../test/dying-store.js';
import { modelStore } from '../../test/model-store.js';
import type { RecordStore } from '../record-store.js';
import { itemShows } from './item-shows.js';
import { episodicLayer } from './episodic-layer.js';
import { semanticLayer } from './semantic-layer.js';
import { proceduralLayer } from './procedural-layer.js';
import { appliedWrites } from './repeats.js';

const ALL = { tenant: 'acme', agent: null };
const WRITES = [
  { kind: 'transition', transition: transitionOf() },
  { kind: 'episode', episode: episodeOf({ reflection: 'Look at the empty list.' }) },
  { kind: 'skill', skill: skillOf({ status: 'active' }) },
  skillUseOf(),
  { kind: 'fact', fact: factOf() },
  {
    kind: 'shows',
    scope: SCOPE,
    shows: ['e1', 'e2'].map((id) => ({
      layer: 'episodic' as const,
      kind: 'episode',
      id,
      owner: { agent: SCOPE.agent, user: null },
      shown: true,
    })),
    right: true,
    tokens: 9,
    at: 1,
  },
] as const;

function layersOver(store: RecordStore) {
  const deps = { store, embedder: new LexicalEmbedder(), clock: { now: Date.now } };
  const episodic = episodicLayer(deps);
  const procedural = proceduralLayer(deps);
  const shows = itemShows(store);
  return { episodic, procedural, shows, writes: appliedWrites({ store, episodic, semantic: semanticLayer(deps), procedural, shows }) };
}

describe('applied writes', () => {
  it('return a stored skill again on a repeat', async () => {
    const { writes } = layersOver(modelStore());
    const first = await writes.apply('acme', 'w', { kind: 'skill', skill: skillOf({ version: 9 }) });
    expect(first).toEqual({ applied: true, skill: newSkill(skillOf(), 1) });
    expect(await writes.apply('acme', 'w', { kind: 'skill', skill: skillOf({ version: 9 }) })).toEqual({
      applied: false,
      skill: newSkill(skillOf(), 1),
    });
  });

  it.each([0, 1, 2, 3])('leave the same state after a crash at change %i', async (changes) => {
    const dying = dyingStore();
    const layers = layersOver(dying.store);
    for (const [i, write] of WRITES.entries()) {
      dying.dieAfter(changes);
      await layers.writes.apply('acme', `w${i}`, write).catch(() => undefined);
      dying.dieAfter(Infinity);
      await layers.writes.apply('acme', `w${i}`, write);
      await layers.writes.apply('acme', `w${i}`, write);
    }
    const undisturbed = layersOver(modelStore());
    for (const [i, write] of WRITES.entries()) await undisturbed.writes.apply('acme', `w${i}`, write);
    expect(await contentsOf(layers)).toEqual(await contentsOf(undisturbed));
    expect(await layers.procedural.get(ALL, 'sum_even')).toMatchObject({ executionCount: 1, fingerprints: ['f1', 'f2'] });
    expect((await dying.store.find(ALL, 'semantic', {}, { order: 'key', limit: 9 })).map(({ kind }) => kind)).toEqual([
      'fact',
      'summary',
      'reflection',
      'applied',
    ]);
  });

  it('lose none of many concurrent uses', async () => {
    const store = modelStore();
    await layersOver(store).procedural.store(skillOf({ status: 'active', cues: [] }));
    await Promise.all(
      Array.from({ length: 40 }, (_, i) => layersOver(store).procedural.applyUse(`u${i}`, skillUseOf({ fingerprint: `p${i}` }))),
    );
    const after = await layersOver(store).procedural.get(ALL, 'sum_even');
    expect(after?.executionCount).toBe(40);
    expect(after?.fingerprints).toHaveLength(41);
  });

  it('refuse a record of another tenant', async () => {
    const { writes } = layersOver(modelStore());
    const foreign = { kind: 'transition', transition: transitionOf({ scope: { ...SCOPE, tenant: 'beta' } }) } as const;
    await expect(writes.apply('acme', 'w', foreign)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
    await expect(writes.apply('', 'w', foreign)).rejects.toMatchObject({ code: 'TENANT_MISSING' });
  });
});

async function contentsOf({ episodic, procedural, shows }: ReturnType<typeof layersOver>) {
  const counters = await Array.fromAsync(shows.list(ALL));
  const skills = await Array.fromAsync(procedural.every(ALL));
  return [await episodic.transitions(ALL, 'tabcdefgh-r1'), await episodic.recent(ALL, 0, 9), skills, counters];
}
