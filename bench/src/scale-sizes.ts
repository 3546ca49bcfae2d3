import { randomUUID } from 'node:crypto';
import { loadavg } from 'node:os';
import { until } from '@etude/test-support/until';
import type { z } from 'zod';
import { percentile } from './figures.js';
import { processTree, readProcesses } from './proc.js';
import { makeTenancy, type SimulatedCluster } from './scale-cluster.js';
import { Claims, type ControllerTask, Filled, Idle, Relist, type ScalePlace, ScaleProcess, Unfinished } from './scale-processes.js';
import { tellProgress, type Watched } from './scale-progress.js';
import { total } from './scale-traffic.js';

export interface ScaleSettings {
  readonly idleSeconds: number;
  readonly claims: number;
  readonly claimsPerSecond: number;
  /** Pods that a controller starts at the same time. The driver's default of 3 is meant for one node. */
  readonly startsMax: number;
  readonly controllers: number;
}

export type Row = Readonly<Record<string, number>>;

const KIB = 1_024;
const MIB = KIB ** 2;
/** Places beyond the free pods: those that are claimed, ending, and being replaced. */
const ROOM = 300;
/** Most time for filling a pool. A pool of 5,000 takes 140 s on two idle cores. */
const FULL_MAX_S = { least: 120, perPod: 0.1 } as const;

function filled(one: z.infer<typeof Filled>, pods: number): Row {
  const { traffic, seconds } = one;
  return {
    fill_s: seconds,
    fill_watch_mib: traffic.watchBytes / MIB,
    fill_events_per_pod: total(traffic.events) / pods,
    event_kib: traffic.watchBytes / Math.max(1, total(traffic.events)) / KIB,
    fill_requests_per_pod: total(traffic.requests) / pods,
    rss_base_mib: one.baseRssMiB,
    rss_peak_mib: one.rssPeakMiB,
  };
}

function idled(all: ReadonlyArray<z.infer<typeof Idle>>, pods: number): Row {
  const per = (value: (one: z.infer<typeof Idle>) => number) => all.reduce((sum, one) => sum + value(one), 0) / all.length;
  return {
    idle_rss_mib: per((one) => one.rssMiB),
    idle_heap_mib: per((one) => one.heapMiB),
    idle_cpu_percent: per((one) => one.cpuPercent),
    idle_watch_kib_per_min: per((one) => (one.traffic.watchBytes / KIB / one.seconds) * 60),
    idle_events_per_min: per((one) => (total(one.traffic.events) / one.seconds) * 60),
    idle_requests_per_min: per((one) => (total(one.traffic.requests) / one.seconds) * 60),
    heap_kib_per_pod: (per((one) => one.heapMiB) * KIB) / pods,
  };
}

function claimed(all: ReadonlyArray<z.infer<typeof Claims>>): Row {
  const firstByteMs = all.flatMap((one) => one.firstByteMs);
  const claimMs = all.flatMap((one) => one.claimMs);
  const sum = (value: (one: z.infer<typeof Claims>) => number) => all.reduce((so, one) => so + value(one), 0);
  return {
    claim_p50_ms: percentile(claimMs, 50),
    claim_p99_ms: percentile(claimMs, 99),
    first_byte_p50_ms: percentile(firstByteMs, 50),
    first_byte_p99_ms: percentile(firstByteMs, 99),
    requests_per_claim: sum((one) => total(one.traffic.requests)) / claimMs.length,
    watch_kib_per_claim: sum((one) => one.traffic.watchBytes) / KIB / claimMs.length,
    conflicts: sum((one) => one.conflicts),
    claim_stall_p99_ms: Math.max(...all.map((one) => one.stallMs)),
    claim_cpu_percent: sum((one) => one.cpuPercent) / all.length,
  };
}

/** Resident memory of etcd, API server, controllers and scheduler together, and their share of one processor. */
async function planeUse(cluster: SimulatedCluster, work: () => Promise<unknown>): Promise<Row> {
  const pids = processTree(cluster.plane.init);
  const before = readProcesses(pids);
  const began = performance.now();
  await work();
  const after = readProcesses(pids);
  const seconds = (performance.now() - began) / 1_000;
  return { plane_rss_mib: after.rssMiB, plane_idle_cpu_percent: ((after.cpuSeconds - before.cpuSeconds) / seconds) * 100 };
}

const prefixed = (prefix: string, row: Row): Row => Object.fromEntries(Object.entries(row).map(([name, value]) => [prefix + name, value]));

/** The results for one size, and the reason if they are incomplete. */
export interface Measured {
  readonly row: Row;
  readonly problem: string | null;
}

/** Measures one size of pool: filling, idling, listing anew and claims with one controller, then several controllers together. */
export async function measureSize(
  cluster: SimulatedCluster,
  pods: number,
  settings: ScaleSettings,
  template: ControllerTask['template'],
  say: (text: string) => void,
): Promise<Measured> {
  const { plane } = cluster;
  const namespace = `scale-${pods}`;
  const { account } = await makeTenancy(plane, namespace);
  const place: ScalePlace = { account, namespace, installation: `s${pods}` };
  const fullMaxSeconds = FULL_MAX_S.least + pods * FULL_MAX_S.perPod;
  const sizes = { pods, podsMax: pods + ROOM, startsMax: settings.startsMax, fullMaxSeconds };
  const size = new ScaleSize(cluster, { ...sizes, place, template, tokenSecret: randomUUID() }, settings, say);
  let problem: string | null = null;
  try {
    await size.measure();
  } catch (error) {
    if (!(error instanceof Unfinished)) throw error;
    problem = error.message;
    say(`${pods} pods: given up: ${problem}`);
  } finally {
    await size.end();
    say(`${pods} pods: deleting them ...`);
    await emptied(cluster, namespace);
  }
  return { row: { ...size.row, load_at_end: loadavg()[0] ?? Number.NaN }, problem };
}

class ScaleSize {
  /** Filled during the measurement, so that a failure keeps the earlier results. */
  row: Row = { load_at_start: loadavg()[0] ?? Number.NaN };
  private readonly supervisors: ScaleProcess;
  private readonly controllers: ScaleProcess[] = [];
  private readonly endProgress: () => void;

  constructor(
    private readonly cluster: SimulatedCluster,
    private readonly task: ControllerTask,
    private readonly settings: ScaleSettings,
    private readonly say: (text: string) => void,
  ) {
    this.supervisors = new ScaleProcess(cluster.plane.enter, 'scale-supervisors-main', task.place);
    const state = () => this.controllers.map(({ progress }, index) => `controller ${index + 1}: ${progress || 'waits'}`).join('; ');
    this.endProgress = tellProgress(() => this.watched(), state, say);
  }

  async measure(): Promise<void> {
    const { pods } = this.task;
    await this.supervisors.line();
    this.tell('filling');
    const fill = await this.another().ask({ do: 'fill' }, Filled);
    this.add(filled(fill, pods));
    await this.measureControllers('');
    const more = this.settings.controllers - 1;
    if (more < 1) return;
    this.tell(`${more} more join`);
    const joined = await Promise.all(Array.from({ length: more }, () => this.another().ask({ do: 'fill' }, Filled)));
    this.add({ shared_join_s: Math.max(...joined.map((each) => each.seconds)) });
    await this.measureControllers('shared_');
  }

  async end(): Promise<void> {
    this.endProgress();
    for (const child of [...this.controllers, this.supervisors]) await child.kill();
  }

  private async measureControllers(prefix: string): Promise<void> {
    const { idleSeconds, claims, claimsPerSecond } = this.settings;
    const { controllers } = this;
    const add = (row: Row) => this.add(prefixed(prefix, row));
    const all = <T>(ask: (controller: ScaleProcess) => Promise<T>) => Promise.all(controllers.map(ask));
    this.tell(`idle for ${idleSeconds} s`);
    let idle: Array<z.infer<typeof Idle>> = [];
    const use = await planeUse(this.cluster, async () => {
      idle = await all((controller) => controller.ask({ do: 'idle', seconds: idleSeconds }, Idle));
    });
    add({ ...idled(idle, this.task.pods), ...use });
    const relists = await all((controller) => controller.ask({ do: 'relist' }, Relist));
    add({ relist_ms: Math.max(...relists.map(({ ms }) => ms)), relist_mib: (relists[0]?.bytes ?? 0) / MIB });
    this.tell(`${claims} claims at ${claimsPerSecond} per second`);
    const share = { count: Math.ceil(claims / controllers.length), perSecond: claimsPerSecond / controllers.length };
    add(claimed(await all((controller) => controller.ask({ do: 'claims', ...share }, Claims))));
  }

  private another(): ScaleProcess {
    const controller = new ScaleProcess(this.cluster.plane.enter, 'scale-controller-main', this.task);
    this.controllers.push(controller);
    return controller;
  }

  private watched(): Watched[] {
    const { cluster, supervisors, controllers } = this;
    const ours = controllers.map(({ pid }, index) => ({ name: `controller ${index + 1}`, pid }));
    return [{ pid: cluster.plane.init }, { pid: cluster.kwok.pid }, { name: 'supervisors', pid: supervisors.pid }, ...ours];
  }

  private add(row: Row): void {
    this.row = { ...this.row, ...row };
  }

  private tell(what: string): void {
    this.say(`${this.task.pods} pods, controllers: ${Math.max(1, this.controllers.length)}; ${what} ...`);
  }
}

/** Deletes the namespace and waits for its end, so that the next size has the machine to itself. */
async function emptied({ plane }: SimulatedCluster, namespace: string): Promise<void> {
  await plane.kubectl(['delete', 'namespace', namespace, '--wait=false']);
  const gone = async () => !(await plane.kubectl(['get', 'namespaces', '-o', 'name'])).includes(`${namespace}\n`);
  await until(gone, { timeoutMs: 600_000, everyMs: 500, what: `the end of ${namespace}` });
}
