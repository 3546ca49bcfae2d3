import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { ExecutionOutcomeSchema } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { expect, it } from 'vitest';
import { outcomeLine } from './execution.js';

const took = { cpu: durationFromMs(100), wall: durationFromMs(20_100), memoryPeakKib: 2_048n };

it.each([
  [{ exit: 'wall', stateLost: true }, 'wall · 20.1 s, 0.1 s cpu, 2.0 MiB; its variables are lost, its files stay'],
  [
    { exit: 'nonzero', exitCode: 1, error: { type: 'ValueError', message: 'no', line: 4 } },
    'nonzero code 1 · ValueError: no (line 4) · 20.1 s, 0.1 s cpu, 2.0 MiB',
  ],
  [
    { exit: 'infra', stateLost: true, error: { type: 'FAILED_PRECONDITION', message: 'infra: its controller ended' } },
    'infra · its controller ended · 20.1 s, 0.1 s cpu, 2.0 MiB; the sandbox and its files are lost',
  ],
])('prints the end of an execution, its reason and its usage: %j', (outcome, line) => {
  expect(outcomeLine(create(ExecutionOutcomeSchema, { ...outcome, ...took }))).toBe(line);
});
