import { randomUUID } from 'node:crypto';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { SandboxLimits } from '@etude/contracts/sandbox';
import { controlMissing, probe } from '../probe.js';
import {
  type ClaimedSandbox,
  noTemplate,
  type SandboxCounts,
  type SandboxDriver,
  type SandboxShape,
  unavailable,
} from '../sandbox-driver.js';
import { newClaim } from '../supervisor-client.js';
import { ClaimedPods } from './claimed-pods.js';
import { type ClusterOptions, KubeApi, type PodApi } from './kube-api.js';
import { LABELS, readPlace, type PodPlace } from './pod-identity.js';
import { bindAgain, type OpenLink, type PodConnection, PodLink } from './pod-link.js';
import { reapPods } from './pod-removal.js';
import { podKind } from './pod-spec.js';
import type { KubeLogger } from './pod-state.js';
import { type PodFeed, PodWatch } from './pod-watch.js';
import { POOL_SETTINGS, type PoolDeps, type PoolSettings } from './pool-settings.js';
import type { SandboxTemplates } from './sandbox-template.js';
import { TemplatePool } from './template-pool.js';

interface KubernetesDriverOptions {
  /** Controllers with the same name share one pool of pods. Lower-case letters, digits and "-", at most 20. */
  readonly installation: string;
  /** Secret from which the tokens of pods are made. Only the controllers of the installation know it. */
  readonly tokenSecret: string;
  readonly templates: SandboxTemplates;
  readonly logger: KubeLogger;
  readonly settings?: Partial<PoolSettings>;
  /** Controls that pods need not enforce, by their names in runner/probe.py. */
  readonly allowMissingControls?: readonly string[];
  /** Whether this is the only controller. If so, its unclaimed pods end with it; otherwise other controllers use them. Default false. */
  readonly alone?: boolean;
}

/** The driver's connections to the cluster; tests pass fakes. */
interface KubernetesDriverParts {
  readonly api: PodApi;
  readonly feed: PodFeed;
  readonly open?: OpenLink;
}

/** Delay before a claimed pod is labelled as claimed. Most sandboxes end sooner, which saves a call to the API server. */
const MARK_AFTER_MS = 250;
const PROBE_TIMEOUT_MS = 60_000;

/** Sandboxes as pods from a warm pool that all controllers of an installation share. */
export class KubernetesDriver implements SandboxDriver {
  private readonly pools = new Map<string, TemplatePool>();
  private readonly claimed: ClaimedPods;
  private readonly stopReaper: () => void;
  private readonly unsubscribe: () => void;
  private readonly deps: PoolDeps;
  private readonly controller = randomUUID();
  /** Templates whose controls are still to be tried. Only `start` adds them. */
  private readonly unproven = new Set<TemplatePool>();
  private closed = false;

  constructor(
    private readonly options: KubernetesDriverOptions,
    private readonly parts: KubernetesDriverParts,
  ) {
    const { installation, templates, tokenSecret, logger: log } = options;
    const { api, feed, open = (...args) => PodLink.open(...args) } = parts;
    const settings = { ...POOL_SETTINGS, ...options.settings };
    this.deps = { api, feed, open, settings, tokenSecret, log, lastClaim: { atMs: -Infinity } };
    for (const [name, template] of Object.entries(templates))
      this.pools.set(name, new TemplatePool(podKind(name, template, installation, this.controller), this.deps));
    this.claimed = new ClaimedPods(this.deps);
    this.unsubscribe = feed.subscribe((change) => this.pools.get(change.pod.labels[LABELS.template] ?? '')?.observe(change));
    for (const pod of feed.pods.values()) this.pools.get(pod.labels[LABELS.template] ?? '')?.observe({ pod, gone: false });
    this.stopReaper = reapPods(this.deps, new Set(this.pools.keys()), (uid) => this.claimed.holds(uid));
  }

  /**
   * Connects to the cluster, takes over the unclaimed pods, fills the pools, and tries every control from inside a pod of each template.
   * If the pods of a template can't start yet, the driver starts anyway, and the first claim tries the controls.
   *
   * @throws EtudeError SANDBOX_CONTROL_MISSING naming the control and the setting that allows it to be missing
   * @throws EtudeError SANDBOX_UNAVAILABLE if the cluster can't be reached or refuses a call
   */
  static async start(options: KubernetesDriverOptions, cluster: ClusterOptions, signal: AbortSignal): Promise<KubernetesDriver> {
    const api = KubeApi.connect(cluster);
    const feed = new PodWatch(api, { selector: `${LABELS.pool}=${options.installation}`, logger: options.logger });
    try {
      await feed.start(signal);
    } catch (error) {
      const { lastError } = feed;
      await feed.close();
      api.close();
      throw lastError === null ? error : unreachable(lastError);
    }
    const driver = new KubernetesDriver(options, { api, feed });
    try {
      await Promise.all([...driver.pools.values()].map((pool) => driver.proveFirst(pool)));
      return driver;
    } catch (error) {
      await driver.close();
      throw error;
    }
  }

  async claim(shape: SandboxShape, signal: AbortSignal): Promise<ClaimedSandbox> {
    signal.throwIfAborted();
    const pool = this.poolFor(shape);
    if (this.unproven.has(pool)) await this.prove(pool);
    return this.claimFrom(pool, signal);
  }

  async attach(text: string, signal: AbortSignal): Promise<ClaimedSandbox> {
    signal.throwIfAborted();
    const place = readPlace(text);
    const pool = this.pools.get(place.template);
    if (!pool) throw unavailable(`the sandbox template "${place.template}" does not exist any more`);
    const link = await bindAgain(place, this.deps, signal).catch((error: Error) => {
      signal.throwIfAborted();
      throw unavailable(`the sandbox in the pod ${place.pod} is gone: ${error.message}`);
    });
    const pod = pool.adopt(place);
    return this.hold(place, link, (last) => pool.remove(pod, last));
  }

  counts(): SandboxCounts {
    const pools = Object.values(this.figures());
    return { free: pools.reduce((sum, { free }) => sum + free, 0), waiting: pools.reduce((sum, { waiting }) => sum + waiting, 0) };
  }

  check(): undefined {
    const { lastError } = this.parts.feed;
    if (lastError !== null) throw unreachable(lastError);
  }

  figures(): Record<string, ReturnType<TemplatePool['figures']>> {
    return Object.fromEntries([...this.pools].map(([name, pool]) => [name, pool.figures()]));
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.stopReaper();
    const claimed = this.claimed.close();
    for (const pool of this.pools.values()) pool.stop(this.options.alone ?? false);
    await Promise.all([...this.pools.values()].map((pool) => pool.drained()));
    await claimed;
    this.unsubscribe();
    await this.parts.feed.close();
    this.parts.api.close();
  }

  private async claimFrom(pool: TemplatePool, signal: AbortSignal): Promise<ClaimedSandbox> {
    if (this.closed) throw unavailable('the sandboxes are being shut down');
    const claim = newClaim();
    const { pod, link } = await pool.claim(claim, signal);
    const { uid = '', ip, labels } = pod.view ?? {};
    const place: PodPlace = { template: pool.kind.name, pod: pod.name, uid, ip: ip ?? '', nonce: labels?.[LABELS.nonce] ?? '', claim };
    return this.hold(place, link, (last) => pool.remove(pod, last));
  }

  private hold(place: PodPlace, link: PodConnection, end: (link: PodConnection | null) => Promise<void>): ClaimedSandbox {
    setTimeout(() => void this.mark(place), MARK_AFTER_MS).unref();
    return this.claimed.hold(place, link, end);
  }

  /** Labels the pod as claimed, for other controllers and for people, unless the claim has ended. */
  private async mark({ pod, uid }: PodPlace): Promise<void> {
    if (!this.claimed.holds(uid)) return;
    const labels = { [LABELS.state]: 'claimed', [LABELS.controller]: this.controller };
    // If the call fails, other controllers notice the claim when they try to bind the pod.
    await this.parts.api.labelPod(pod, uid, labels).catch((error: unknown) => {
      this.options.logger.warn({ pod, err: error }, 'a sandbox pod could not be labelled as claimed');
    });
  }

  private async proveFirst(pool: TemplatePool): Promise<void> {
    this.unproven.add(pool);
    await this.prove(pool).catch((error: unknown) => {
      if (errorCode(error) === 'SANDBOX_CONTROL_MISSING') throw error;
      const { logger } = this.options;
      logger.warn(
        { template: pool.kind.name, err: error },
        'the controls of this template could not be tried in a pod; the first claim tries them again',
      );
    });
  }

  /** Tries every control from inside a pod of the template. @throws EtudeError SANDBOX_CONTROL_MISSING naming the control */
  private async prove(pool: TemplatePool): Promise<void> {
    const { allowMissingControls = [], logger } = this.options;
    const { name, template } = pool.kind;
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const sandbox = await this.claimFrom(pool, signal);
    try {
      const { memoryMiB, diskMiB, egress } = template;
      const limits = SandboxLimits.parse({ processes: 8, memoryMiB, diskMiB });
      const found = await probe(sandbox, limits, signal, { pod: { internet: egress.length > 0 } });
      for (const [control, why] of Object.entries(found)) {
        if (!allowMissingControls.includes(control)) throw controlMissing(control, `in pods of the template "${name}"`, why, true);
        logger.warn({ template: name, control }, `a sandbox control is missing, which the settings allow: ${why}`);
      }
      this.unproven.delete(pool);
    } finally {
      void sandbox.release();
    }
  }

  private poolFor({ template: name, memoryMiB, diskMiB }: SandboxShape): TemplatePool {
    const pool = this.pools.get(name);
    if (!pool) throw noTemplate(name, this.pools);
    const { template } = pool.kind;
    for (const [field, asked, most] of [
      ['memory_mib', memoryMiB, template.memoryMiB],
      ['disk_mib', diskMiB, template.diskMiB],
    ] as const)
      if (asked > most)
        throw new EtudeError(
          'INVALID_ARGUMENT',
          `${field} is ${asked}, but must be at most ${most} in sandboxes of the template "${name}"`,
          {
            field: `limits.${field}`,
          },
        );
    return pool;
  }
}

const unreachable = (why: string) => unavailable(`the pods of the cluster can't be watched: ${why}`);
