import type { Scratchpad } from '../ports/work-sandboxes.js';
export const workingMemory = ({ values }: Scratchpad): string =>
  values.length === 0 ? '' : '## Working Memory\n\n' + values.map(({ name, shown }) => `- ${name}: ${shown}`).join('\n');
