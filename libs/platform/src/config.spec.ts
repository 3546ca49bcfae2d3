import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testFolder } from '@etude/test-support/test-folder';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { baseConfig, flag, loadConfig, readSandboxPackages } from './config.js';

it('uses the default for an unset or empty variable', () => {
  expect(loadConfig(baseConfig, { ETUDE_LOG_LEVEL: '', OTHER: 'x' })).toEqual({
    ETUDE_LOG_LEVEL: 'info',
    ETUDE_REDIS_URL: 'redis://127.0.0.1:6379',
    ETUDE_QUEUE_PREFIX: 'etude',
    ETUDE_HTTP_HOST: '127.0.0.1',
    ETUDE_HTTP_PORT: 0,
    ETUDE_DRAIN_MS: 0,
    ETUDE_TRACES: false,
    ETUDE_TRACE_CONTENT: false,
    ETUDE_TRACE_RATIO: 1,
  });
});

it('names every wrong variable without its value', () => {
  const schema = baseConfig.extend({ ETUDE_NEEDED: z.string() });
  const load = () => loadConfig(schema, { ETUDE_HTTP_PORT: 'secret1', ETUDE_LOG_LEVEL: 'secret2' });
  expect(load).toThrow(/ETUDE_LOG_LEVEL[^]*ETUDE_HTTP_PORT[^]*ETUDE_NEEDED is not set/);
  expect(load).not.toThrow(/secret/);
});

it.each([
  ['true', true],
  ['ON', true],
  ['0', false],
  ['no', false],
])('reads the flag %s', (text, value) => {
  expect(loadConfig(z.object({ F: flag() }), { F: text })).toEqual({ F: value });
  expect(() => loadConfig(z.object({ F: flag() }), { F: 'maybe' })).toThrow('F has a wrong value');
});

function written(content: string): string {
  const path = join(testFolder(), 'packages.json');
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
