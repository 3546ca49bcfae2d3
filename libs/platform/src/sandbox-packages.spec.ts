import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readSandboxPackages } from './config.js';

const dir = mkdtempSync(join(tmpdir(), 'etude-packages-'));
afterAll(() => rmSync(dir, { recursive: true }));

function written(content: string): string {
  const path = join(dir, 'packages.json');
  writeFileSync(path, content);
  return path;
}

it('reads packages by sandbox template, and none without a file', () => {
  expect(readSandboxPackages(written('{"science": ["numpy==2.3.1"]}'))).toEqual({ science: ['numpy==2.3.1'] });
  expect(readSandboxPackages(undefined)).toEqual({});
});

it.each([
  ['{', /can't be read/],
  ['{"science": ["numpy"]}', /exact version/],
  ['{"Not A Name": []}', /is wrong at Not A Name/],
])('refuses %j', (content, message) => {
  expect(() => readSandboxPackages(written(content))).toThrow(
    expect.objectContaining({ code: 'FAILED_PRECONDITION', message: expect.stringMatching(message) }),
  );
});

it('does not quote a file that is not JSON, since it may hold secrets', () => {
  for (const content of ['{"token": hunter2}', 'hunter2', `{"token": "${'x'.repeat(60)}", hunter2 "${'y'.repeat(60)}"}`])
    expect(() => readSandboxPackages(written(content))).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
    );
});
