import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { afterAll, beforeAll } from 'vitest';
import { GatewayRig } from './gateway.harness.js';
import { writeProofKeys } from './skill-store.js';

const apps = join(import.meta.dirname, '..', '..');
const compiler = join(apps, '..', 'node_modules', '.bin', 'tsc');

type Worker = 'sandbox-controller' | 'consolidation-worker';
type Settings = Readonly<Record<string, string>>;

const START_TIMEOUT_MS = 240_000;

/** The real services beside a rig's gateway: sandboxes, and what verifies skills and counts their uses. */
async function startWorkers(rig: GatewayRig, names: readonly Worker[], more: Settings): Promise<TestProcess[]> {
  await promisify(execFile)(compiler, ['-b', ...names.map((name) => join(apps, name))]);
  const env = { ETUDE_EMBEDDER: 'lexical', OPENAI_BASE_URL: 'http://127.0.0.1:9/v1', OPENAI_MODEL: 'none', ...rig.environment(more) };
  return Promise.all(names.map((name) => startProcess({ args: [join(apps, name, 'dist', 'main.js')], env })));
}

/**
 * A gateway for one test file, and beside it what verifies, signs and runs skills: started before its tests, stopped behind them. Skills are
 * switched on and approved automatically; `settings`, asked right before the start, come on top of that.
 */
export function skillsForFile(settings: () => Settings | Promise<Settings> = () => ({})): GatewayRig {
  const rig = new GatewayRig();
  const { signingPath, publicPath } = writeProofKeys(rig.dir);
  let workers: readonly TestProcess[] = [];
  beforeAll(async () => {
    const all = {
      ETUDE_SKILLS_ENABLED: 'true',
      ETUDE_SKILLS_APPROVAL: 'automatic',
      ETUDE_SKILLS_PUBLIC_KEYS_PATH: publicPath,
      ...(await settings()),
    };
    await rig.start(all);
    workers = await startWorkers(rig, ['sandbox-controller', 'consolidation-worker'], {
      ...all,
      ETUDE_SKILLS_SIGNING_KEY_PATH: signingPath,
    });
  }, START_TIMEOUT_MS);
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    await rig.stop();
  });
  return rig;
}
