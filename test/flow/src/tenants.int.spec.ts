import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { programEnvironment } from '@etude/test-support/processes';
import { startStack } from '@etude/test-support/stack';
import { expect, it, onTestFinished } from 'vitest';
import { keyOf, writeKeys } from './tenant-keys.js';

const CLI = fileURLToPath(new URL('../../../apps/cli/dist/main.js', import.meta.url));
const SPEC = { prompt: 'Add two numbers', evaluator: { kind: { case: 'none' as const, value: {} } } };

it('shows an operator what each tenant uses, its limits and its refusals', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'etude-tenants-'));
  const keysPath = join(dir, 'keys.json');
  writeKeys(keysPath, ['acme', 'idle'], 'operator');
  const script = fileURLToPath(new URL('./learning.yaml', import.meta.url));
  const limits = JSON.stringify({ acme: { weight: 3, tasks: 2, submitsPerMinute: 60 } });
  const env = { ETUDE_AUTH_KEYS_PATH: keysPath, ETUDE_AUTH_ANONYMOUS_TENANT: '', ETUDE_TENANT_LIMITS: limits };
  const stack = await startStack({ script, env });
  const acme = createServiceClient(Tasks, stack.address, { apiKey: keyOf('acme') });
  onTestFinished(async () => {
    acme.close();
    await stack.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  const etude = async (...words: string[]) => {
    const cli = { ETUDE_ADDRESS: stack.address, ETUDE_API_KEY: keyOf('acme'), ETUDE_HOME: join(dir, 'home') };
    return (await promisify(execFile)(process.execPath, [CLI, ...words], { env: { ...programEnvironment(), ...cli } })).stdout;
  };

  for (let i = 0; i < 2; i++) await acme.submitTask({ spec: SPEC });
  await expect(acme.submitTask({ spec: SPEC })).rejects.toThrow('tenant acme has 2 unfinished tasks, and may have at most 2');

  const use = { name: 'acme', waiting: 2, refusedToday: '1', limits: { weight: 3, tasks: 2, submitsPerMinute: 60 } };
  await expect.poll(async () => JSON.parse(await etude('tenants', '--json')) as unknown).toMatchObject({ tenants: [use] });
  const [head, row, ...rest] = (await etude('tenants')).trimEnd().split('\n');
  expect(head).toMatch(/^NAME .*WEIGHT .*WAITING .*REFUSED/);
  expect(row).toMatch(/^acme +3 +2 +0 +2 +60 /);
  expect(rest).toEqual([]);
}, 60_000);
