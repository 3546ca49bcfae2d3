import type { RunResult, SandboxRun } from '@etude/contracts/sandbox';
import { describe } from 'vitest';
import { FakeSandboxes } from './fake-sandboxes.js';
import { CONFORMANCE_RUNS, repeatsConformance, sandboxesConformance } from './sandboxes-conformance.js';

/** What the suite's run gives; a hanging one takes a moment, in which the caller gives up. */
async function play(run: SandboxRun): Promise<Partial<RunResult>> {
  const known = CONFORMANCE_RUNS.find((one) => one.run === run || JSON.stringify(one.run) === JSON.stringify(run));
  if (!known) throw new Error('the suite runs something that its list does not hold');
  if (known.hangs) await new Promise((resolve) => setTimeout(resolve, 20));
  return known.gives;
}

const make = () => Promise.resolve({ sandboxes: new FakeSandboxes(play) });

describe('FakeSandboxes', () => {
  sandboxesConformance(make);
  repeatsConformance(make);
});
