import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Tasks, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient, status } from '@etude/contracts/grpc-client';
import { makeCertificates } from '@etude/test-support/certificates';
import { programEnvironment } from '@etude/test-support/processes';
import { startStack } from '@etude/test-support/stack';
import { credentials } from '@grpc/grpc-js';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));

it('solves a task and runs code in a sandbox over mutual TLS on every port, and talks to nobody without a certificate', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'etude-flow-tls-'));
  const { ca, cert, key } = makeCertificates(dir);
  const tls = { ETUDE_TLS_CERT_PATH: cert, ETUDE_TLS_KEY_PATH: key, ETUDE_TLS_CA_PATH: ca };
  const stack = await startStack({
    script: join(root, 'sdks/python/tests/model.yaml'),
    env: { ...tls, ETUDE_TLS_CLIENT_CA_PATH: ca, ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside' },
  });
  const [authority, own, chain] = [ca, key, cert].map((path) => readFileSync(path));
  const address = stack.address.replace('127.0.0.1', 'localhost');
  const tasks = createServiceClient(Tasks, address, { credentials: credentials.createSsl(authority, own, chain) });
  const nobody = createServiceClient(Tasks, address, { credentials: credentials.createSsl(readFileSync(ca)) });
  const plain = createServiceClient(Tasks, address);
  try {
    await stack.startRolloutWorker();
    const evaluator = { kind: { case: 'pythonTests' as const, value: { entryPoint: 'square', tests: 'assert square(3) == 9' } } };
    const { name } = await tasks.submitTask({ spec: { prompt: 'Write a function square(n).', evaluator } });
    expect((await tasks.waitTask({ name, timeout: { seconds: 60n } })).state).toBe(TaskState.SUCCEEDED);
    for (const client of [nobody, plain])
      await expect(client.getTask({ name }, { timeoutMs: 20_000 })).rejects.toMatchObject({ code: status.UNAVAILABLE });
    // The command line reaches the gateway, and the gateway the sandbox controller.
    const env = { ...programEnvironment(), ...tls, ETUDE_ADDRESS: address, ETUDE_HOME: dir };
    const main = join(root, 'apps/cli/dist/main.js');
    expect((await promisify(execFile)(process.execPath, [main, 'sandbox', 'run', '6 * 7'], { env })).stdout).toBe('42\n');
  } finally {
    for (const client of [tasks, nobody, plain]) client.close();
    await stack.stop();
    rmSync(dir, { recursive: true, force: true });
  }
});
