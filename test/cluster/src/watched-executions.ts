import { randomBytes } from 'node:crypto';
import { type ExecutionRequest, type RunResult, SandboxLimits } from '@etude/contracts/sandbox';
import { DrivenSandboxes } from '@etude/sandbox/driven-sandboxes';
import { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { type PodPlace, readPlace } from '@etude/sandbox/kubernetes/pod-identity';
import type { PoolSettings } from '@etude/sandbox/kubernetes/pool-settings';
import { SandboxTemplates } from '@etude/sandbox/kubernetes/sandbox-template';
import type { ClaimedSandbox, ExecutionSink, SandboxDriver } from '@etude/sandbox/sandbox-driver';
import { until } from '@etude/test-support/until';
import type { Cluster } from './cluster.js';

const MEMORY_MIB = 64;
const DISK_MIB = 4;
export const SHAPE = { template: 'default', memoryMiB: MEMORY_MIB, diskMiB: DISK_MIB };
const never = new AbortController().signal;
const silent = () => undefined;

/** Templates with one pod kind that is small, so that many pods fit on one node. */
export const smallTemplates = (more: object = {}): SandboxTemplates =>
  SandboxTemplates.parse({
    default: { image: process.env['ETUDE_SANDBOX_IMAGE'], cpuRequest: '5m', memoryMiB: MEMORY_MIB, diskMiB: DISK_MIB, ...more },
  });

export interface DriverOptions {
  readonly template?: object;
  readonly settings?: Partial<PoolSettings>;
  /** Hears what goes well and what does not; a fault makes many of the latter. */
  readonly hear?: (message: string) => void;
}

/** A controller's driver whose pods are gone when it is closed. */
export function startDriver(
  { kubeconfig }: Cluster,
  namespace: string,
  { template = {}, settings = {}, hear = silent }: DriverOptions = {},
): Promise<KubernetesDriver> {
  const installation = `t${randomBytes(4).toString('hex')}`;
  const heard = (_details: object, message: string) => hear(message);
  const logger = { debug: silent, info: heard, warn: heard, error: console.error };
  return KubernetesDriver.start(
    { installation, tokenSecret: installation, alone: true, logger, settings, templates: smallTemplates(template) },
    { kubeconfigPath: kubeconfig, namespace },
    AbortSignal.timeout(60_000),
  );
}

/** One execution in a pod, as its caller and this test see it. */
export interface WatchedExecution {
  readonly pod: PodPlace;
  /** What came while it ran. */
  printed(): string;
  /** Of its only run. */
  readonly result: Promise<RunResult>;
}

export function executionOf(code: string, more: Partial<ExecutionRequest> = {}): ExecutionRequest {
  return {
    executionId: randomBytes(8).toString('hex'),
    tenant: 'acme',
    files: [],
    limits: SandboxLimits.parse({ memoryMiB: MEMORY_MIB, diskMiB: DISK_MIB, wallMs: 120_000 }),
    stopOnFailure: false,
    runs: [{ kind: 'program', code, stdin: '' }],
    ...more,
  };
}

/** Runs code as the controller does, and resolves once it has printed its first line. */
export async function execute(driver: SandboxDriver, code: string): Promise<WatchedExecution> {
  const seen = { pod: null as PodPlace | null, text: '' };
  const tapped: SandboxDriver = {
    ...bound(driver),
    claim: async (shape, signal) => {
      const sandbox = await driver.claim(shape, signal);
      seen.pod = readPlace(sandbox.place ?? '');
      return tap(sandbox, (text) => (seen.text += text));
    },
  };
  const sandboxes = new DrivenSandboxes(tapped, { concurrencyMax: 1, waitingMax: 1 });
  const result = sandboxes.execute(executionOf(code), never).then(({ runs: [run] }) => {
    if (!run) throw new Error('the execution has no result');
    return run;
  });
  const printed = until(() => (seen.text.includes('\n') ? seen.pod : null), { what: 'the first line' });
  const pod = await Promise.race([printed, result.then(({ exit, error }) => Promise.reject(new Error(`${exit}: ${error?.message}`)))]);
  return { pod, printed: () => seen.text, result };
}

const bound = (driver: SandboxDriver) => ({ attach: driver.attach.bind(driver), close: driver.close.bind(driver) });

function tap(sandbox: ClaimedSandbox, hear: (text: string) => void): ClaimedSandbox {
  const tapped = (sink: ExecutionSink): ExecutionSink => ({
    output: (run, stream, text, at) => {
      hear(text);
      sink.output(run, stream, text, at);
    },
    display: (...display) => sink.display(...display),
    result: (...result) => sink.result(...result),
  });
  return {
    place: sandbox.place,
    lost: sandbox.lost,
    files: sandbox.files,
    execute: (execution, sink, signal) => sandbox.execute(execution, tapped(sink), signal),
    release: () => sandbox.release(),
  };
}

/** Prints its numbers one by one, so that a gap or a repeat would show. */
export const counting = (to: number, everyS = 0.1): string =>
  `import time\nfor i in range(${to}):\n    print(i, flush=True)\n    time.sleep(${everyS})`;
export const counted = (to: number): string => Array.from({ length: to }, (_, i) => `${i}\n`).join('');

/** Prints one line and never ends by itself. */
export const ENDLESS = 'import time\nprint("so far", flush=True)\ntime.sleep(600)';

/** A claim whose sandbox is released at once. */
export async function claimOnce(driver: SandboxDriver): Promise<void> {
  const sandbox = await driver.claim(SHAPE, never);
  void sandbox.release();
}
