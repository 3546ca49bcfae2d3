import type { Scratchpad } from '../ports/work-sandboxes.js';
export const workingMemory = (_: Scratchpad): string => '';
