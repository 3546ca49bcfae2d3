import { episodicMemoryConformance } from '@etude/domain/testing/episodic-memory-conformance';
import { proceduralMemoryConformance } from '@etude/domain/testing/procedural-memory-conformance';
import { semanticMemoryConformance } from '@etude/domain/testing/semantic-memory-conformance';
import { describe } from 'vitest';
import { temporaryMemory } from '../test/temporary-memory.js';

async function layer<K extends 'episodic' | 'semantic' | 'procedural'>(name: K) {
  const { memory, close } = await temporaryMemory();
  return { memory: memory[name], close };
}

describe('SqliteEpisodicMemory', () => {
  episodicMemoryConformance(() => layer('episodic'));
});
describe('SqliteSemanticMemory', () => {
  semanticMemoryConformance(() => layer('semantic'));
});
describe('SqliteProceduralMemory', () => {
  proceduralMemoryConformance(() => layer('procedural'));
});
