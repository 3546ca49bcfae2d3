import { randomBytes } from 'node:crypto';
import { errorCode } from '@etude/contracts/errors';
import { type ExecutionRequest, type RunResult, SandboxLimits } from '@etude/contracts/sandbox';
import { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { type PodPlace, readPlace } from '@etude/sandbox/kubernetes/pod-identity';
import type { PoolSettings } from '@etude/sandbox/kubernetes/pool-settings';
import { SandboxTemplates } from '@etude/sandbox/kubernetes/sandbox-template';
import { RunAssembly } from '@etude/sandbox/driven-sandboxes';
import type { SandboxDriver } from '@etude/sandbox/sandbox-driver';
import { until } from '@etude/test-support/until';
import type { Cluster } from './cluster.js';

const MEMORY_MIB = 64;
const DISK_MIB = 4;
export const SHAPE = { template: 'default', memoryMiB: MEMORY_MIB, diskMiB: DISK_MIB };
const never = new AbortController().signal;
const silent = () => undefined;

/** Templates of small pods, so that many fit on one node. */
export const smallTemplates = (more: object = {}): SandboxTemplates =>
  SandboxTemplates.parse({
    default: { image: process.env['ETUDE_SANDBOX_IMAGE'], cpuRequest: '5m', memoryMiB: MEMORY_MIB, diskMiB: DISK_MIB, ...more },
  });

export interface DriverOptions {
  readonly installation?: string;
  readonly template?: object;
  readonly settings?: Partial<PoolSettings>;
  /** Gets each log message. A fault causes many warnings. */
  readonly hear?: (message: string) => void;
}

/** Starts the driver of a controller. Its pods end when it is closed. */
export function startDriver(
  { kubeconfig }: Cluster,
  namespace: string,
  { installation = `t${randomBytes(4).toString('hex')}`, template = {}, settings = {}, hear = silent }: DriverOptions = {},
): Promise<KubernetesDriver> {
  const heard = (_details: object, message: string) => hear(message);
  const logger = { debug: silent, info: heard, warn: heard, error: console.error };
  return KubernetesDriver.start(
    { installation, tokenSecret: installation, alone: true, logger, settings, templates: smallTemplates(template) },
    { kubeconfigPath: kubeconfig, namespace },
    AbortSignal.timeout(60_000),
  );
}

/** Waits for at least `count` free pods. After a failure of the API server, scheduler and kubelet may take a minute to connect again. */
export const full = (driver: KubernetesDriver, count: number) =>
  until(() => (driver.figures().default?.free ?? 0) >= count, { timeoutMs: 150_000, everyMs: 50, what: `${count} free pods` });

/** Claims all free pods, while no pod can be started. */
export async function claimFree(driver: KubernetesDriver): Promise<void> {
  while ((driver.figures().default?.free ?? 0) > 0) await claimOnce(driver);
}

/** One execution in a pod. */
export interface WatchedExecution {
  readonly pod: PodPlace;
  printed(): string;
  /** The result of its only run. */
  readonly result: Promise<RunResult>;
}

export const executionOf = (code: string): ExecutionRequest => ({
  executionId: randomBytes(8).toString('hex'),
  tenant: 'acme',
  files: [],
  limits: SandboxLimits.parse({ memoryMiB: MEMORY_MIB, diskMiB: DISK_MIB, wallMs: 120_000 }),
  stopOnFailure: false,
  runs: [{ kind: 'program', code, stdin: '' }],
});

class Watched extends RunAssembly {
  text = '';

  override output(stream: 'stdout' | 'stderr', text: string): void {
    this.text += text;
    super.output(stream, text);
  }
}

/** Runs code in a pod, and resolves once it has printed its first line. */
export async function execute(driver: SandboxDriver, code: string): Promise<WatchedExecution> {
  const sandbox = await driver.claim(SHAPE, never);
  const watched = new Watched();
  const result = sandbox.execute(executionOf(code), watched, never).then((end) => {
    void sandbox.release();
    if (end) watched.lose(end);
    return watched.results[0] as RunResult;
  });
  const printed = until(() => watched.text.includes('\n'), { what: 'the first line' });
  await Promise.race([printed, result.then(({ exit, error }) => Promise.reject(new Error(`${exit}: ${error?.message}`)))]);
  return { pod: readPlace(sandbox.place ?? ''), printed: () => watched.text, result };
}

/** Code that prints numbers one by one, so that tests notice a gap or a repeat. */
export const counting = (to: number): string => `import time\nfor i in range(${to}):\n    print(i, flush=True)\n    time.sleep(0.1)`;
export const counted = (to: number) => ({ exit: 'ok', stdout: Array.from({ length: to }, (_, i) => `${i}\n`).join('') });

/** Code that prints one line and never ends by itself. */
export const ENDLESS = 'import time\nprint("so far", flush=True)\ntime.sleep(600)';

export async function claimOnce(driver: SandboxDriver): Promise<void> {
  const sandbox = await driver.claim(SHAPE, never);
  void sandbox.release();
}

export async function refusal(driver: SandboxDriver) {
  const error = await claimOnce(driver).then(
    () => new Error('the claim was served'),
    (reason: Error & { details?: { metadata?: Record<string, string> } }) => reason,
  );
  const metadata = 'details' in error ? error.details?.metadata : {};
  return { code: errorCode(error), exit: metadata?.['exit'], message: error.message };
}
