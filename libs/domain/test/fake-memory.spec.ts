import { describe } from 'vitest';
import { episodicMemoryConformance } from './episodic-memory-conformance.js';
import { FakeEpisodicMemory } from './fake-episodic-memory.js';
import { FakeProceduralMemory } from './fake-procedural-memory.js';
import { FakeSemanticMemory } from './fake-semantic-memory.js';
import { proceduralMemoryConformance } from './procedural-memory-conformance.js';
import { semanticMemoryConformance } from './semantic-memory-conformance.js';

const clock = { now: Date.now };

describe('FakeEpisodicMemory', () => {
  episodicMemoryConformance(async () => ({ memory: new FakeEpisodicMemory(clock) }));
});
describe('FakeSemanticMemory', () => {
  semanticMemoryConformance(async () => ({ memory: new FakeSemanticMemory(clock) }));
});
describe('FakeProceduralMemory', () => {
  proceduralMemoryConformance(async () => ({ memory: new FakeProceduralMemory(clock) }));
});
