import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import type { GatewayRig } from './gateway.harness.js';

const apps = join(import.meta.dirname, '..', '..');
const compiler = join(apps, '..', 'node_modules', '.bin', 'tsc');

type Worker = 'sandbox-controller' | 'consolidation-worker';

/** The real services beside a rig's gateway: sandboxes, and what verifies skills and counts their uses. */
export async function startWorkers(
  rig: GatewayRig,
  names: readonly Worker[],
  more: Readonly<Record<string, string>> = {},
): Promise<TestProcess[]> {
  await promisify(execFile)(compiler, ['-b', ...names.map((name) => join(apps, name))]);
  const env = { ETUDE_EMBEDDER: 'lexical', OPENAI_BASE_URL: 'http://127.0.0.1:9/v1', OPENAI_MODEL: 'none', ...rig.environment(more) };
  return Promise.all(names.map((name) => startProcess({ args: [join(apps, name, 'dist', 'main.js')], env })));
}
