import { EtudeError, type ErrorCode } from '@etude/contracts/errors';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { NEW_YEAR, SCOPE, skillOf } from '@etude/domain/testing/memory-records';
import { describe, expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { proceduralLayer } from './procedural-layer.js';

/** A layer with one skill, and what its writes fail with from now on. */
async function layerThatFails(code: ErrorCode) {
  const store = modelStore();
  const deps = { embedder: new LexicalEmbedder(), clock: { now: () => NEW_YEAR } };
  const skill = await proceduralLayer({ ...deps, store }).store(skillOf());
  const write = () => Promise.reject(new EtudeError(code, 'nothing can be written'));
  return { layer: proceduralLayer({ ...deps, store: { ...store, write } }), skill };
}

describe('offers of skills', () => {
  it.each(['MEMORY_FULL', 'MEMORY_UNAVAILABLE'] as const)(
    'are lost where they can not be written (%s), and hold up no reader',
    async (code) => {
      const { layer, skill } = await layerThatFails(code);
      await expect(layer.countOffers([{ ...keyOf(skill), loadedAt: NEW_YEAR }])).resolves.toBeUndefined();
      expect((await layer.get(SCOPE, skill.name))?.usage?.offered ?? 0).toBe(0);
    },
  );
});
