import { readFileSync } from 'node:fs';
import { create, fromJson } from '@bufbuild/protobuf';
import { durationFromMs, ValueSchema } from '@bufbuild/protobuf/wkt';
import { ExecutionOutcomeSchema, RichOutputSchema } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { outcomeLine, saveDisplay } from './execution.js';
import { CellReader } from './repl.js';

it('keeps every form of an output but the text that stands for it', () => {
  const dir = temporaryFolder();
  const image = create(RichOutputSchema, { text: { 'text/plain': '<Figure>' }, binary: { 'image/png': new Uint8Array([1, 2]) } });
  const rows = create(RichOutputSchema, {
    text: { 'text/plain': 'a  b', 'text/html': '<table>' },
    json: { 'application/vnd.dataresource+json': fromJson(ValueSchema, { data: [{ a: 1 }] }) },
  });
  const number = create(RichOutputSchema, { text: { 'text/plain': '2' } });
  const saved = [image, rows, number].flatMap((output, index) => saveDisplay(dir, index + 1, output));
  expect(saved.map((path) => path.slice(dir.length + 1))).toEqual(['1.png', '2.html', '2.table.json', '3.txt']);
  expect(readFileSync(saved[0] ?? '')).toEqual(Buffer.from([1, 2]));
  expect(JSON.parse(readFileSync(saved[2] ?? '', 'utf8'))).toEqual({ data: [{ a: 1 }] });
});

const took = { cpu: durationFromMs(100), wall: durationFromMs(20_100), memoryPeakKib: 2_048n };

it.each([
  [{ exit: 'wall', stateLost: true }, 'wall · 20.1 s, 0.1 s cpu, 2.0 MiB; its names are gone, its files stay'],
  [
    { exit: 'nonzero', exitCode: 1, error: { type: 'ValueError', message: 'no', line: 4 } },
    'nonzero code 1 · ValueError: no (line 4) · 20.1 s, 0.1 s cpu, 2.0 MiB',
  ],
  [
    { exit: 'infra', stateLost: true, error: { type: 'FAILED_PRECONDITION', message: 'infra: its controller ended' } },
    'infra · its controller ended · 20.1 s, 0.1 s cpu, 2.0 MiB; the sandbox is lost, with its files',
  ],
])('says how code ended, why and what it took: %j', (outcome, line) => {
  expect(outcomeLine(create(ExecutionOutcomeSchema, { ...outcome, ...took }))).toBe(line);
});

it.each([
  ['single lines', ['a = 1', '', 'a + 1'], ['a = 1', 'a + 1']],
  [
    'blocks up to an empty line',
    ['def f(x):  # doubles', '  return 2 * x', '', 'f(2)'],
    ['def f(x):  # doubles\n  return 2 * x\n', 'f(2)'],
  ],
  ['the block under a decorator', ['@cache', 'def f(): return 1', ''], ['@cache\ndef f(): return 1\n']],
])('reads cells: %s', (_what, lines, cells) => {
  const reader = new CellReader();
  expect(lines.flatMap((line) => reader.take(line) ?? [])).toEqual(cells);
});
