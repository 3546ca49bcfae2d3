import { randomBytes } from 'node:crypto';
import { errorDetails, EtudeError } from '@etude/contracts/errors';
import type { ExitReason } from '@etude/contracts/sandbox';
import type { LostSandbox } from '../sandbox-driver.js';
import { kubeReason, QUOTA_RACE } from './kube-errors.js';
import { numberOf, podNameOf, tokenOf } from './pod-identity.js';
import { type PodKind, podManifest, userOf } from './pod-spec.js';
import type { PodRoster, RosterPod } from './pod-roster.js';
import type { PoolDeps } from './pool-settings.js';
import type { SandboxTemplate } from './sandbox-template.js';

/** The error for a claim that got no pod: SANDBOX_CAPACITY if there is no room, else SANDBOX_UNAVAILABLE. */
export function claimRefusal({ name, template }: PodKind, before: number, problem: LostSandbox | null): EtudeError {
  const { max } = template.warm;
  const { exit } = problem ?? { exit: 'capacity' };
  const why = problem
    ? `no sandbox of the template "${name}" can be started: ${problem.message}`
    : `no sandbox of the template "${name}" became free, and there may be at most ${max}; try again later, or raise its warm.max`;
  const message = `${why} (${before} claims were waiting before this one)`;
  return new EtudeError(exit === 'capacity' ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE', message, {
    metadata: { exit, position: String(before), limit: String(max), template: name },
  });
}

/** Creates pods in free slots, with exponential backoff after failures. */
export class PodStarter {
  creations = 0;
  /** Why the last pod could not be created or started; null once a pod starts. */
  problem: LostSandbox | null = null;
  private waitMs = 0;
  private notBeforeMs = 0;
  private readonly stop = new AbortController();

  constructor(
    private readonly kind: PodKind,
    private readonly roster: PodRoster,
    private readonly deps: PoolDeps,
    private readonly changed: () => void,
  ) {}

  /** Whether the backoff after a failure still lasts. */
  get held(): boolean {
    return performance.now() < this.notBeforeMs;
  }

  /** How many pods may be created now. After a failure at most one, until a pod starts. */
  get startsMax(): number {
    return this.held ? 0 : this.problem ? 1 : Infinity;
  }

  /** @param owed true: only this controller creates these pods, so it starts at its own slot. false: all controllers do, at slot 0 first */
  start(count: number, owed: boolean): void {
    const { max } = this.kind.template.warm;
    const first = owed ? numberOf(this.kind.controller) % max : 0;
    for (let i = 0, left = count; i < max && left > 0; i += 1) {
      const slot = (first + i) % max;
      if (this.roster.has(slot)) continue;
      void this.create(slot);
      left -= 1;
    }
  }

  /** @param retryAfterMs the wait that the API server asked for */
  failed(problem: LostSandbox, retryAfterMs = 0): void {
    const { backoffMs, backoffMaxMs } = this.deps.settings;
    // Several pods that fail together count as one failure.
    if (!this.held) this.waitMs = Math.min(backoffMaxMs, this.waitMs === 0 ? backoffMs : this.waitMs * 2);
    const waitMs = Math.max(this.waitMs, retryAfterMs);
    this.notBeforeMs = performance.now() + waitMs;
    this.problem = problem;
    this.deps.log.warn({ template: this.kind.name, exit: problem.exit, waitMs }, `a sandbox pod could not be started: ${problem.message}`);
  }

  worked(): void {
    this.problem = null;
    this.waitMs = 0;
    this.notBeforeMs = 0;
  }

  close(): void {
    this.stop.abort();
  }

  private async create(slot: number): Promise<void> {
    const { name, template, installation } = this.kind;
    const pod = this.roster.expect(slot, podNameOf(installation, name, slot));
    const nonce = randomBytes(16).toString('hex');
    const taken = new Set([...this.deps.feed.pods.values()].map(({ user: other }) => other));
    const user = userOf(template, taken);
    const manifest = podManifest(this.kind, { slot, nonce, token: tokenOf(this.deps.tokenSecret, nonce), user });
    this.creations += 1;
    try {
      this.roster.created(pod, await this.deps.api.createPod(manifest, this.stop.signal));
    } catch (error) {
      // AlreadyExists: another controller was faster, or the answer to an earlier request was lost. The watch will report the pod.
      if (kubeReason(error) !== 'AlreadyExists' && !this.stop.signal.aborted) this.notCreated(pod, error);
    }
    this.changed();
  }

  private notCreated(pod: RosterPod, error: unknown): void {
    this.roster.forget(pod);
    if (kubeReason(error) === QUOTA_RACE) return;
    const { metadata, retryAfterMs } = errorDetails(error);
    this.failed({ exit: (metadata?.exit ?? 'infra') as ExitReason, message: (error as Error).message }, retryAfterMs);
  }
}

/** A pod that takes longer to start counts as stuck, and no longer counts towards `startsMax`. */
const SLOW_START_MS = 10_000;

/**
 * Decides how many pods this controller creates.
 *
 * The controller that claims a pod must also replace it (`owed`), so that not every controller does. If a pod is missing for long,
 * all controllers create it in the same slot, and only one succeeds. Surplus pods are not removed; claims use them up.
 */
export class PoolBalance {
  private owed = 0;
  /** Since when pods are missing; null if no pod is missing. At the start pods count as missing for long, so this controller creates them. */
  private shortSinceMs: number | null = -Infinity;

  constructor(
    private readonly sizes: SandboxTemplate['warm'],
    private readonly deps: PoolDeps,
  ) {}

  /** @param pods 1: this controller took a pod; -1: that pod could not be bound */
  owe(pods: 1 | -1): void {
    this.owed = Math.max(0, this.owed + pods);
  }

  /** Whether pods have been missing for so long that all controllers replace them. */
  get adopting(): boolean {
    return this.shortSinceMs !== null && performance.now() - this.shortSinceMs >= this.deps.settings.adoptAfterMs;
  }

  /**
   * Creation waits for a moment without claims, because a start takes processor time from the code on its node. It doesn't wait if a claim
   * waits or half of the free pods are used up.
   *
   * @param waiting number of claims that wait in this controller
   * @returns how many pods to create, and in `short` how many pods are missing for which there are free slots
   */
  plan(roster: PodRoster, waiting: number) {
    const { settings, lastClaim } = this.deps;
    const { max, free } = this.sizes;
    const missing = Math.max(0, free + waiting - roster.supply);
    const short = Math.min(missing, Math.max(0, max - roster.size));
    // Not limited to the free slots, because the slots of ending pods become free later.
    this.owed = Math.min(this.owed, missing);
    const mine = this.adopting ? short : Math.min(short, Math.max(this.owed, waiting - roster.supply));
    this.shortSinceMs = short > 0 ? (this.shortSinceMs ?? performance.now()) : null;
    const isUrgent = waiting > 0 || roster.counts().free < free / 2;
    if (!isUrgent && performance.now() - lastClaim.atMs < settings.quietMs) return { short, create: 0 };
    return { short, create: Math.min(mine, Math.max(0, settings.startsMax - this.onTheirWay(roster))) };
  }

  private onTheirWay(roster: PodRoster): number {
    const since = performance.now() - SLOW_START_MS;
    let count = 0;
    for (const { state, addedMs } of roster.values()) if ((state === 'creating' || state === 'starting') && addedMs >= since) count += 1;
    return count;
  }
}
