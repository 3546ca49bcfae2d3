import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, fromJson } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs, ValueSchema } from '@bufbuild/protobuf/wkt';
import { ExecutionOutcomeSchema, RichOutputSchema, SandboxSchema, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DisplayFolder, plainText, unshownForms } from './execution.js';
import { CellReader } from './repl.js';
import { cutLine, outcomeLine, sandboxTable } from './sandbox-lines.js';

const image = create(RichOutputSchema, { text: { 'text/plain': '<Figure>' }, binary: { 'image/png': new Uint8Array([1, 2]) } });
const rows = create(RichOutputSchema, {
  text: { 'text/plain': 'a  b', 'text/html': '<table>' },
  json: { 'application/vnd.dataresource+json': fromJson(ValueSchema, { data: [{ a: 1 }] }) },
});
const number = create(RichOutputSchema, { text: { 'text/plain': '2' } });

it('keeps every form of an output but the text that stands for it', () => {
  const dir = mkdtempSync(join(tmpdir(), 'etude-displays-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const folder = new DisplayFolder(join(dir, 'made'));
  const saved = [image, rows, number].flatMap((output) => folder.save(output));
  expect(saved.map((path) => path.slice(dir.length + 6))).toEqual(['1.png', '2.html', '2.table.json', '3.txt']);
  expect(readdirSync(join(dir, 'made'))).toHaveLength(4);
  expect(readFileSync(saved[0] ?? '')).toEqual(Buffer.from([1, 2]));
  expect(JSON.parse(readFileSync(saved[2] ?? '', 'utf8'))).toEqual({ data: [{ a: 1 }] });
});

it('says which forms a terminal does not show', () => {
  expect([plainText(image), unshownForms(image)]).toEqual(['<Figure>', 'image/png, 2 B']);
  expect([plainText(number), unshownForms(number)]).toEqual(['2', '']);
});

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

function cellsOf(...lines: string[]): string[] {
  const reader = new CellReader();
  return lines.flatMap((line) => reader.take(line) ?? []);
}

describe('cells of a loop', () => {
  it('are single lines', () => {
    expect(cellsOf('a = 1', '', 'a + 1')).toEqual(['a = 1', 'a + 1']);
  });

  it('are blocks up to an empty line', () => {
    expect(cellsOf('def f(x):  # doubles', '  return 2 * x', '', 'f(2)')).toEqual(['def f(x):  # doubles\n  return 2 * x\n', 'f(2)']);
  });

  it('wait for the block under a decorator', () => {
    expect(cellsOf('@cache', 'def f(): return 1', '')).toEqual(['@cache\ndef f(): return 1\n']);
  });
});
