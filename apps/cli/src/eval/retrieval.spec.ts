import { describe, expect, it } from 'vitest';
import { retrievalArgs } from './eval.command.js';

describe('retrievalArgs', () => {
  it('hands on what was asked for, with folders that mean the same anywhere', () => {
    const options = { format: 'beir', adapter: 'qdrant', embedder: 'sentence', half: 'report', sweep: true } as const;
    const words = '--adapter qdrant --embedder sentence --half report --sweep /sets/a /b';
    expect(retrievalArgs(['/sets/a', '/sets/../b'], options)).toEqual(words.split(' '));
    expect(retrievalArgs([], { format: 'beir', adapter: 'sqlite', half: 'all' })).toEqual(['--adapter', 'sqlite', '--half', 'all']);
  });
});
