import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { memoryConfig, requireMemory } from './memory-config.js';

const schema = requireMemory(z.object({ OTHER: z.string() }).extend(memoryConfig.shape));
const wrong = (env: object) => (schema.safeParse({ OTHER: 'x', ...env }).error?.issues ?? []).map(({ path }) => path[0]);

describe('the settings of memory', () => {
  it('select a SQLite file by default', () => {
    expect(schema.parse({ OTHER: 'x', ETUDE_MEMORY_PATH: '/m' })).toMatchObject({
      ETUDE_MEMORY_ADAPTER: 'sqlite',
      ETUDE_QDRANT_COLLECTION_PREFIX: 'etude',
    });
  });

  it('require the address of the chosen adapter', () => {
    expect(wrong({})).toEqual(['ETUDE_MEMORY_PATH']);
    expect(wrong({ ETUDE_MEMORY_ADAPTER: 'qdrant' })).toEqual(['ETUDE_QDRANT_URL']);
    expect(wrong({ ETUDE_MEMORY_ADAPTER: 'qdrant', ETUDE_QDRANT_URL: 'http://127.0.0.1:6333' })).toEqual([]);
    expect(wrong({ ETUDE_MEMORY_ADAPTER: 'qdrant', ETUDE_QDRANT_URL: 'ftp://x' })).toContain('ETUDE_QDRANT_URL');
    expect(wrong({ ETUDE_MEMORY_ADAPTER: 'redis', ETUDE_MEMORY_PATH: '/m' })).toEqual(['ETUDE_MEMORY_ADAPTER']);
  });

  it('are reported together with other invalid settings', () => {
    expect(wrong({ OTHER: 1 })).toEqual(['OTHER', 'ETUDE_MEMORY_PATH']);
  });
});
