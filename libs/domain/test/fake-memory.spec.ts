import { describe } from 'vitest';
import { FakeProceduralMemory } from './fake-procedural-memory.js';
import { proceduralMemoryConformance } from './procedural-memory-conformance.js';

describe('FakeProceduralMemory', () => {
  proceduralMemoryConformance(async () => ({ memory: new FakeProceduralMemory({ now: Date.now }) }));
});
