import { memoryConformance } from './memory-conformance.js';
import { temporaryMemory } from './temporary-memory.js';

memoryConformance('sqlite', temporaryMemory, { isolationRuns: 25 });
