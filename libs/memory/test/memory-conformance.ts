import { conversationConformance } from './conversation-conformance.js';
import { episodicMemoryConformance } from './episodic-memory-conformance.js';
import { proceduralMemoryConformance } from '@etude/domain/testing/procedural-memory-conformance';
import { semanticMemoryConformance } from './semantic-memory-conformance.js';
import type { Clock } from '@etude/domain/ports/clock';
import { describe } from 'vitest';
import { itemShowsConformance } from './item-shows-conformance.js';
import type { MemoryUnderTest } from './layers-isolation.js';
import { ISOLATION_CLOCK, layersIsolation } from './layers-isolation.js';
import { memoryRecallConformance } from './memory-recall-conformance.js';
import { unitsConformance } from './units-conformance.js';
import { singleRecordsConformance } from './single-records-conformance.js';

/** The behaviour of the three layers over every adapter. `open` makes an empty memory, and is called once per test. */
export function memoryConformance(
  name: string,
  open: (options?: { readonly clock: Clock }) => Promise<MemoryUnderTest>,
  { isolationRuns }: { readonly isolationRuns: number },
): void {
  const layer = async <K extends 'episodic' | 'semantic' | 'procedural'>(which: K) => {
    const { memory, close } = await open();
    return { memory: memory[which], close };
  };
  describe(`memory in ${name}`, () => {
    episodicMemoryConformance(() => layer('episodic'));
    semanticMemoryConformance(() => layer('semantic'));
    proceduralMemoryConformance(() => layer('procedural'));
    conversationConformance(open);
    memoryRecallConformance(open);
    singleRecordsConformance(open);
    itemShowsConformance(open);
    unitsConformance((options) => open(options), { hasScores: name === 'sqlite' });
    layersIsolation(name, () => open({ clock: ISOLATION_CLOCK }), { runs: isolationRuns });
  });
}
