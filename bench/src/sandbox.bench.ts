import { parseArgs } from 'node:util';
import { percentile, round, summaryLine } from './figures.js';
import type { Endpoint } from './sandbox-child.js';
import { claimsAtPace } from './sandbox-claims.js';
import { benchCluster } from './sandbox-cluster.js';
import { coldStarts } from './sandbox-cold.js';
import { type DriverChoice, type KubernetesChoice, newInstallation, startDriver, type StartedDriver } from './sandbox-drivers.js';
import { cancelMs, executionOverhead, floodGrowth } from './sandbox-executions.js';
import { orphanSeconds } from './sandbox-orphan.js';
import { raceForBinds, raceForPods, raceForProcesses } from './sandbox-races.js';

const POOL = 60;
const FLOOD = 100;
const LEASE_S = 15;

interface Scale {
  readonly pool: number;
  readonly burst: number;
  readonly steadySeconds: number;
  readonly executions: number;
  readonly cancels: number;
  readonly colds: number;
  readonly flood: number;
  readonly binds: number;
  readonly bindPods: number;
}

const WHOLE: Scale = {
  pool: POOL,
  burst: 50,
  steadySeconds: 60,
  executions: 300,
  cancels: 100,
  colds: 7,
  flood: FLOOD,
  binds: 100_000,
  bindPods: 30,
};
const QUICK: Scale = { pool: 8, burst: 6, steadySeconds: 4, executions: 30, cancels: 10, colds: 1, flood: 4, binds: 1_000, bindPods: 4 };

type Say = (text: string) => void;
type Row = readonly [name: string, value: number, note: string];

const say: Say = (text) => process.stderr.write(`${text}\n`);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function filled(started: StartedDriver, count: number): Promise<void> {
  const end = performance.now() + 300_000;
  while (started.free() < count) {
    if (performance.now() > end) throw new Error(`the pool holds ${started.free()} of ${count} sandboxes after five minutes`);
    await sleep(100);
  }
  await sleep(1_000); // for background work to end
}

async function withDriver<T>(choice: DriverChoice, work: (started: StartedDriver) => Promise<T>): Promise<T> {
  const started = await startDriver(choice);
  try {
    return await work(started);
  } finally {
    await started.close();
  }
}

/** Claims in a burst, and at a steady pace while the pool refills. Both begin with a full pool. */
function claims(choice: DriverChoice, scale: Scale): Promise<{ burst: number[]; steady: number[] }> {
  return withDriver(choice, async (started) => {
    await filled(started, scale.pool);
    say(`a burst of ${scale.burst} claims at 50 per second ...`);
    const burst = await claimsAtPace(started.driver, scale.burst, 50);
    await filled(started, scale.pool);
    say(`2 claims per second for ${scale.steadySeconds} s ...`);
    return { burst, steady: await claimsAtPace(started.driver, 2 * scale.steadySeconds, 2) };
  });
}

/** Supervisors that are free, as another controller finds them. */
async function endpoints({ installation, tokenSecret, kubeconfigPath, namespace }: KubernetesChoice, count: number): Promise<Endpoint[]> {
  const { KubeApi } = await import('@etude/sandbox/kubernetes/kube-api');
  const { LABELS, supervisorNameOf, tokenOf } = await import('@etude/sandbox/kubernetes/pod-identity');
  const { POOL_SETTINGS } = await import('@etude/sandbox/kubernetes/pool-settings');
  const api = KubeApi.connect({ kubeconfigPath, namespace });
  const { pods } = await api.listPods(`${LABELS.pool}=${installation}`);
  const ready = pods.filter(({ ip, phase, deleting }) => ip !== null && phase === 'Running' && !deleting).slice(0, count);
  return ready.map((pod) => ({
    ip: pod.ip ?? '',
    port: POOL_SETTINGS.port,
    supervisor: supervisorNameOf(pod),
    token: tokenOf(tokenSecret, pod.labels[LABELS.nonce] ?? ''),
  }));
}

async function races(choice: DriverChoice, scale: Scale): Promise<Row> {
  if (choice.kind === 'local') {
    const { claims: count, doubles } = await withDriver(choice, ({ driver }) => raceForProcesses(driver, Math.ceil(scale.binds / 100)));
    return ['double_binds', doubles, `${count} claims by racing callers of one controller; no other can reach a local sandbox`];
  }
  const shared = { ...choice, ...newInstallation(), warm: scale.bindPods, podsMax: 2 * scale.bindPods };
  const pods = await withDriver(shared, async (started) => {
    await filled(started, scale.bindPods);
    return raceForPods(shared, scale.bindPods);
  });
  const again = { ...shared, ...newInstallation() };
  const binds = await withDriver(again, async (started) => {
    await filled(started, scale.bindPods);
    return raceForBinds(await endpoints(again, scale.bindPods), scale.binds);
  });
  return ['double_binds', pods.doubles + binds.doubles, `${pods.claims} claims for pods and ${binds.claims} binds, by three controllers`];
}

async function measure(choice: DriverChoice, scale: Scale): Promise<Row[]> {
  const { burst, steady } = await claims(choice, scale);
  const worst = (p: number) => Math.max(percentile(burst, p), percentile(steady, p));
  const few: DriverChoice = { ...choice, warm: 1, ...(choice.kind === 'kubernetes' ? newInstallation() : {}) };
  say('executions in one sandbox ...');
  const executed = await withDriver(few, ({ driver }) => executionOverhead(driver, scale.executions));
  say('cancels ...');
  const cancelled = await withDriver(few, ({ driver }) => cancelMs(driver, scale.cancels));
  say('cold starts ...');
  const cold = await coldStarts(few, scale.colds);
  say('an orphan ...');
  const orphan = await orphanSeconds(few);
  say(`${scale.flood} sandboxes that print without end ...`);
  const many: DriverChoice = { ...few, warm: choice.kind === 'kubernetes' ? scale.flood : 1 };
  const growth = await withDriver(many, async (started) => {
    if (many.kind === 'kubernetes') await filled(started, scale.flood);
    return floodGrowth(started.driver, scale.flood, say);
  });
  say('races ...');
  const race = await races(choice, scale);
  const lease = choice.kind === 'kubernetes' ? LEASE_S : 0;
  return [
    ['claim_p50_ms', worst(50), `burst ${round(percentile(burst, 50))}, steady ${round(percentile(steady, 50))}`],
    ['claim_p99_ms', worst(99), `burst ${round(percentile(burst, 99))}, steady ${round(percentile(steady, 99))}`],
    ['cold_ratio', cold.coldMs / cold.bareMs, `cold ${round(cold.coldMs)} ms, bare ${round(cold.bareMs)} ms`],
    ['execute_overhead_p50_ms', executed.sandbox - executed.bare, `${round(executed.sandbox)} ms, bare fork ${round(executed.bare)} ms`],
    ['cancel_p99_ms', percentile(cancelled, 99), `p50 ${round(percentile(cancelled, 50))} ms of ${cancelled.length}`],
    ['flood_growth_mib', growth, `${scale.flood} sandboxes`],
    ['orphan_over_lease_s', orphan - lease, `${round(orphan)} s after its controller was killed, lease ${lease} s`],
    race,
  ];
}

/** `etude bench sandbox --driver local|kubernetes [--json] [--quick]`: compares claims and executions with baselines in the same run. */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { json: { type: 'boolean' }, quick: { type: 'boolean' }, driver: { type: 'string', default: 'local' } },
  });
  if (values.driver !== 'local' && values.driver !== 'kubernetes') {
    say(`--driver is local or kubernetes, not "${values.driver}"`);
    return 2;
  }
  const scale = values.quick ? QUICK : WHOLE;
  const cluster = values.driver === 'kubernetes' ? await benchCluster(say) : null;
  try {
    const choice: DriverChoice = cluster
      ? { kind: 'kubernetes', warm: scale.pool, podsMax: 2 * Math.max(scale.pool, scale.flood), ...newInstallation(), ...cluster.place }
      : { kind: 'local', warm: scale.pool };
    const rows = await measure(choice, scale);
    const figures = Object.fromEntries(rows.map(([name, value]) => [name, round(value)]));
    if (!values.json)
      process.stdout.write(
        rows.map(([name, value, note]) => `${name.padEnd(26)} ${String(round(value)).padStart(9)}   ${note}\n`).join(''),
      );
    process.stdout.write(`${summaryLine('sandbox', figures)}\n`);
    return 0;
  } finally {
    await cluster?.close();
  }
}
