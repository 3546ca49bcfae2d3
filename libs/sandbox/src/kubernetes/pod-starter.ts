import { randomBytes } from 'node:crypto';
import { errorDetails, EtudeError } from '@etude/contracts/errors';
import type { ExitReason } from '@etude/contracts/sandbox';
import { kubeReason, QUOTA_RACE } from './kube-client.js';
import { numberOf, podNameOf, tokenOf } from './pod-identity.js';
import { podManifest, userOf, type PodContext } from './pod-spec.js';
import type { PodRoster, RosterPod } from './pod-roster.js';
import type { PoolDeps } from './pool-settings.js';
import type { SandboxTemplate } from './sandbox-template.js';

/** Why pods can't be created or don't start. */
export interface PoolProblem {
  readonly exit: ExitReason;
  readonly message: string;
  readonly retryAfterMs?: number | undefined;
}

/** The error for a claim that got no pod: SANDBOX_CAPACITY if room is lacking, else SANDBOX_UNAVAILABLE. */
export function claimRefusal({ name, template }: PodKind, before: number, problem: PoolProblem | null): EtudeError {
  const { max } = template.warm;
  const { exit, retryAfterMs } = problem ?? { exit: 'capacity' };
  const why = problem
    ? `no sandbox of the template "${name}" can be started: ${problem.message}`
    : `none of at most ${max} sandboxes of the template "${name}" became free; try again later, or raise its warm.max`;
  const message = `${why} (${before} claims wait before this one)`;
  return new EtudeError(exit === 'capacity' ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE', message, {
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    metadata: { exit, position: String(before), limit: String(max), template: name },
  });
}

export interface PodKind {
  readonly name: string;
  readonly template: SandboxTemplate;
  readonly digest: string;
  readonly context: PodContext;
  readonly tokenSecret: string;
}

/** Creates pods in free slots, with exponential backoff after failures. */
export class PodStarter {
  creations = 0;
  /** Why the last pod could not be created or started; null once one starts. */
  problem: PoolProblem | null = null;
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
    return this.deps.now() < this.notBeforeMs;
  }

  /** How many pods may be created now. After a failure at most one, until a pod starts. */
  get startsMax(): number {
    return this.held ? 0 : this.problem ? 1 : Infinity;
  }

  /** @param owed true: starts at a slot of this controller's own. false: starts at slot 0, where only one of all controllers succeeds */
  start(count: number, owed: boolean): void {
    const { max } = this.kind.template.warm;
    const first = owed ? numberOf(this.kind.context.controller) % max : 0;
    for (let i = 0, left = count; i < max && left > 0; i += 1) {
      const slot = (first + i) % max;
      if (this.roster.at(slot)) continue;
      void this.create(slot);
      left -= 1;
    }
  }

  failed(problem: PoolProblem): void {
    const { backoffMs, backoffMaxMs } = this.deps.settings;
    // Several pods that fail together count as one failure.
    if (!this.held) this.waitMs = Math.min(backoffMaxMs, this.waitMs === 0 ? backoffMs : this.waitMs * 2);
    const waitMs = Math.max(this.waitMs, problem.retryAfterMs ?? 0);
    this.notBeforeMs = this.deps.now() + waitMs;
    this.problem = { ...problem, retryAfterMs: waitMs };
    this.deps.log.warn({ template: this.kind.name, exit: problem.exit, waitMs }, `no sandbox pod could be started: ${problem.message}`);
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
    const { name, template, digest, context, tokenSecret } = this.kind;
    const pod = this.roster.expect(slot, podNameOf(context.installation, name, slot));
    const nonce = randomBytes(16).toString('hex');
    const taken = new Set([...this.deps.feed.pods.values()].map(({ user: other }) => other));
    const user = userOf(template, taken, () => randomBytes(4).readUInt32BE() / 2 ** 32);
    const manifest = podManifest(name, template, context, { slot, nonce, token: tokenOf(tokenSecret, nonce), user }, digest);
    this.creations += 1;
    try {
      this.roster.created(pod, await this.deps.api.createPod(manifest, this.stop.signal));
    } catch (error) {
      // AlreadyExists: another controller was sooner, or an answer to an earlier try was lost. The watch will show the pod.
      if (kubeReason(error) !== 'AlreadyExists' && !this.stop.signal.aborted) this.notCreated(pod, error);
    }
    this.changed();
  }

  private notCreated(pod: RosterPod, error: unknown): void {
    this.roster.forget(pod);
    if (kubeReason(error) === QUOTA_RACE) return;
    const { metadata, retryAfterMs } = errorDetails(error);
    this.failed({ exit: (metadata?.exit ?? 'infra') as ExitReason, message: (error as Error).message, retryAfterMs });
  }
}
