import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ExecutionOutcomeSchema, SandboxSchema, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { expect, it } from 'vitest';
import { cutLine, outcomeLine, sandboxTable } from './sandbox-lines.js';

const took = { cpu: durationFromMs(100), wall: durationFromMs(20_100), memoryPeakKib: 2_048n };

it('says how code ended, what that means and what it took', () => {
  expect(outcomeLine(create(ExecutionOutcomeSchema, { exit: 'wall', stateLost: true, ...took }))).toBe(
    'wall · it took longer than its wall time · 20.1 s, 0.1 s cpu, 2.0 MiB; its names are gone, its files stay',
  );
  expect(outcomeLine(create(ExecutionOutcomeSchema, { exit: 'nonzero', exitCode: 3, ...took }))).toContain('nonzero code 3 · it ended');
});

it('says which exception ended it, and where', () => {
  const error = { type: 'ValueError', message: 'no', line: 4 };
  expect(outcomeLine(create(ExecutionOutcomeSchema, { exit: 'nonzero', error, ...took }))).toContain('ValueError: no (line 4)');
});

it('says that a sandbox is lost with its files, in the words of whoever saw it', () => {
  const error = { type: 'FAILED_PRECONDITION', message: 'infra: the controller that held it ended (vm-1)' };
  const nothing = { cpu: durationFromMs(0), wall: durationFromMs(0) };
  for (const figures of [{}, nothing])
    expect(outcomeLine(create(ExecutionOutcomeSchema, { exit: 'infra', stateLost: true, error, ...figures }))).toBe(
      'infra · the controller that held it ended (vm-1); the sandbox is lost, with its files',
    );
  expect(outcomeLine(create(ExecutionOutcomeSchema, { exit: 'oomkilled', ...took }))).toBe(
    'oomkilled · the sandbox as a whole ran out of memory · 20.1 s, 0.1 s cpu, 2.0 MiB; the sandbox is lost, with its files',
  );
});

it('says that the time of a sandbox was over, and not that somebody cancelled', () => {
  const error = { type: 'SandboxExpired', message: "the sandbox's time was over; renew it in time" };
  expect(outcomeLine(create(ExecutionOutcomeSchema, { exit: 'cancelled', error, ...took }))).toMatch(
    /^cancelled · the sandbox's time was over/,
  );
});

it('says what was left out of the output', () => {
  expect(cutLine(create(ExecutionOutcomeSchema, { stdoutCutBytes: 2_048n }))).toContain('2.0 KiB of stdout');
  expect(cutLine(create(ExecutionOutcomeSchema, {}))).toBe('');
});

it('counts down what an open sandbox has left', () => {
  const times = { createTime: timestampFromMs(0), expireTime: timestampFromMs(90_000) };
  const open = create(SandboxSchema, { name: 'sandboxes/s1', state: SandboxState.OPEN, template: 'default', ...times });
  const lost = create(SandboxSchema, { ...open, name: 'sandboxes/s2', state: SandboxState.LOST, stateReason: 'evicted' });
  const [, first, second] = sandboxTable([open, lost], 60_000).split('\n');
  expect(first).toMatch(/^s1 +open +default +1970-01-01T00:00:00Z +30 s$/);
  expect(second).toMatch(/^s2 +lost .* - +evicted$/);
});
