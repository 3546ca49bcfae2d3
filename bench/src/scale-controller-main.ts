import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '@etude/test-support/until';
import { readConfig } from '@etude/sandbox/kubernetes/kube-api';
import { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { PodWatch } from '@etude/sandbox/kubernetes/pod-watch';
import type { SandboxTemplate } from '@etude/sandbox/kubernetes/sandbox-template';
import { execution, FirstByte, never, SHAPE } from './sandbox-claims.js';
import { ControllerCommand, ControllerTask } from './scale-processes.js';
import { between, MeteredApi, total, TrafficMeter } from './scale-traffic.js';

const PROGRESS_MS = 5_000;
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: console.error };
const task = ControllerTask.parse(JSON.parse(process.argv[2] ?? ''));
const { place, pods, podsMax, startsMax } = task;
const selector = `etude.dev/pool=${place.installation}`;

/** Connects as a service account, like a controller inside the cluster. */
function connect(meter: TrafficMeter | null): MeteredApi {
  const api = new MeteredApi(readConfig(place.account), place.namespace);
  api.meter = meter;
  return api;
}

const meter = new TrafficMeter();
const mib = (bytes: number) => bytes / 2 ** 20;
const collect = (globalThis as { gc?: () => void }).gc;

async function startDriver(): Promise<KubernetesDriver> {
  const api = connect(meter);
  const feed = new PodWatch(api, { selector, logger: silent });
  await feed.start(AbortSignal.timeout(60_000));
  // The parent has checked the template, because the check loads a package that the driver doesn't use.
  const template = { ...task.template, warm: { max: podsMax, free: pods } } as unknown as SandboxTemplate;
  const { installation } = place;
  const options = { installation, tokenSecret: task.tokenSecret, templates: { default: template }, logger: silent };
  return new KubernetesDriver({ ...options, settings: { startsMax } }, { api, feed });
}

let driver: KubernetesDriver | null = null;
const figures = () => driver?.figures()['default'];
const isFull = () => (figures()?.free ?? 0) >= pods && figures()?.ending === 0;
const full = () => until(isFull, { timeoutMs: task.fullMaxSeconds * 1_000, everyMs: 20, what: `a pool of ${pods}` });
const answer = (line: object) => void process.stdout.write(`${JSON.stringify(line)}\n`);

function state(): string {
  const {
    free = 0,
    starting = 0,
    ours = 0,
    taken = 0,
    ending = 0,
    waiting = 0,
    creations = 0,
    conflicts = 0,
    problem = null,
  } = figures() ?? {};
  const counts = { free, starting, ours, taken, ending, waiting, creations, conflicts };
  const words = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  return [...words, `events ${total(meter.events)}`, ...(problem === null ? [] : [problem])].join(', ');
}

async function fill() {
  collect?.();
  const baseRssMiB = mib(process.memoryUsage.rss());
  const before = meter.read();
  const began = performance.now();
  let peak = 0;
  const look = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 100);
  driver ??= await startDriver();
  await full();
  clearInterval(look);
  const seconds = (performance.now() - began) / 1_000;
  return { seconds, baseRssMiB, rssPeakMiB: mib(peak), traffic: between(before, meter.read()) };
}

async function idle(seconds: number) {
  const before = meter.read();
  const cpu = process.cpuUsage();
  const began = performance.now();
  await sleep(seconds * 1_000);
  const { user, system } = process.cpuUsage(cpu);
  const tookMs = performance.now() - began;
  const traffic = between(before, meter.read());
  const rssMiB = mib(process.memoryUsage.rss());
  collect?.();
  const heapMiB = mib(process.memoryUsage().heapUsed);
  return { rssMiB, heapMiB, cpuPercent: (user + system) / 10 / tookMs, seconds: tookMs / 1_000, traffic };
}

/** Lists all pods anew beside the driver, as the driver's watch does when its version is too old. */
async function relist() {
  const api = connect(meter);
  const before = meter.read();
  const began = performance.now();
  const feed = new PodWatch(api, { selector, logger: silent });
  await feed.start(never());
  const ms = performance.now() - began;
  const { listBytes, requests } = between(before, meter.read());
  await feed.close();
  api.close();
  return { ms, bytes: listBytes, requests: requests['list'] ?? 0 };
}

async function claimOnce(times: { claimMs: number[]; firstByteMs: number[] }): Promise<void> {
  const began = performance.now();
  const sandbox = await driver?.claim(SHAPE, never());
  if (!sandbox) throw new Error('the pool is empty; send the command fill first');
  times.claimMs.push(performance.now() - began);
  const sink = new FirstByte();
  const running = sandbox.execute(execution('pass'), sink, never());
  await sink.heard;
  times.firstByteMs.push(performance.now() - began);
  await running;
  await sandbox.release();
}

/** Claims at an even pace, then waits until the pool is full again. */
async function claims(count: number, perSecond: number) {
  const times = { claimMs: [] as number[], firstByteMs: [] as number[] };
  const before = meter.read();
  const conflicts = figures()?.conflicts ?? 0;
  const cpu = process.cpuUsage();
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const began = performance.now();
  const running: Array<Promise<void>> = [];
  for (let i = 0; i < count; i++) {
    await sleep(Math.max(0, began + (i * 1_000) / perSecond - performance.now()));
    running.push(claimOnce(times));
  }
  const { user, system } = process.cpuUsage(cpu);
  const cpuPercent = (user + system) / 10 / (performance.now() - began);
  loop.disable();
  await Promise.all(running);
  await full();
  const stallMs = loop.percentile(99) / 1e6;
  return { ...times, conflicts: (figures()?.conflicts ?? 0) - conflicts, stallMs, cpuPercent, traffic: between(before, meter.read()) };
}

const answerOf = (command: ControllerCommand): Promise<object> => {
  if (command.do === 'fill') return fill();
  if (command.do === 'idle') return idle(command.seconds);
  if (command.do === 'relist') return relist();
  return claims(command.count, command.perSecond);
};

for await (const line of createInterface({ input: process.stdin })) {
  const telling = setInterval(() => answer({ progress: state() }), PROGRESS_MS);
  try {
    answer(await answerOf(ControllerCommand.parse(JSON.parse(line))));
  } catch (error) {
    answer({ failure: `${(error as Error).message}: ${state()}` });
  } finally {
    clearInterval(telling);
  }
}
// The parent of this process has ended.
process.exit();
