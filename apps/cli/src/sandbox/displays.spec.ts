import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, fromJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { RichOutputSchema } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { expect, it, onTestFinished } from 'vitest';
import { DisplayFolder, plainText, unshownForms } from './displays.js';

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
