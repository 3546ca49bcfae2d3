import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { JsonObject } from '@bufbuild/protobuf';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { writeProofKeys } from '@etude/test-support/proof-keys';
import { afterAll, beforeAll } from 'vitest';
import { GatewayRig, type KeyName, type Settings } from './gateway.harness.js';

const apps = join(import.meta.dirname, '..', '..');
const compiler = join(apps, '..', 'node_modules', '.bin', 'tsc');

const START_TIMEOUT_MS = 240_000;

/** Compiles apps with their libraries. @returns the path of each app's main module */
export async function builtMains<N extends readonly string[]>(...names: N): Promise<{ [K in keyof N]: string }> {
  await promisify(execFile)(compiler, ['-b', ...names.map((name) => join(apps, name))]);
  return names.map((name) => join(apps, name, 'dist', 'main.js')) as { [K in keyof N]: string };
}

/** Starts real workers beside a gateway. The controller runs sandboxes; the consolidation worker verifies skills and counts their uses. */
async function startWorkers(rig: GatewayRig, more: Settings): Promise<TestProcess[]> {
  const mains = await builtMains('sandbox-controller', 'consolidation-worker');
  const env = { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1', OPENAI_MODEL: 'none', ...rig.environment(more) };
  return Promise.all(mains.map((main) => startProcess({ args: [main], env })));
}

/**
 * A gateway and the workers that verify, sign and run skills. They start before the tests of a file and stop after them.
 * Skills are enabled and approved automatically. `settings` is called right before the start and overrides these defaults.
 */
export function skillsForFile(settings: () => Settings | Promise<Settings> = () => ({})): GatewayRig {
  const rig = new GatewayRig();
  const { ETUDE_SKILLS_SIGNING_KEY_PATH, ...trusted } = writeProofKeys(rig.dir);
  let workers: readonly TestProcess[] = [];
  beforeAll(async () => {
    const all = {
      ETUDE_SKILLS_ENABLED: 'true',
      ETUDE_SKILLS_APPROVAL: 'automatic',
      ...trusted,
      ...(await settings()),
    };
    await rig.start(all);
    workers = await startWorkers(rig, { ...all, ETUDE_SKILLS_SIGNING_KEY_PATH });
  }, START_TIMEOUT_MS);
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    await rig.stop();
  });
  return rig;
}

/** The caller; default: agent "coder" of tenant "acme". */
export interface Caller {
  readonly key?: KeyName;
  readonly agent?: string;
  readonly user?: string;
  readonly session?: string;
  readonly requestId?: string;
}

/** Calls tools of a gateway. */
export const toolCalls =
  (rig: GatewayRig) =>
  async (tool: string, args: JsonObject, { key = 'acme', ...caller }: Caller = {}) => {
    const { success, result, error } = await rig.client(Tools, key).callTool({ tool, arguments: args, agent: 'coder', ...caller });
    return { success, error, result: (result ?? {}) as Record<string, unknown> };
  };
