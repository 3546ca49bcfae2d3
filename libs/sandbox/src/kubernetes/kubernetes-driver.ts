import { randomUUID } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import { type ClaimedSandbox, type SandboxDriver, type SandboxShape, unavailable } from '../sandbox-driver.js';
import { newClaim } from '../supervisor-client.js';
import { ClaimedPods } from './claimed-pods.js';
import { KubeApi, type PodApi } from './kube-api.js';
import { LABELS, readPlace, tokenOf, type PodPlace } from './pod-identity.js';
import { bindAgain, type OpenLink, type PodConnection, PodLink } from './pod-link.js';
import { PodProof } from './pod-proof.js';
import { PodReaper } from './pod-removal.js';
import type { RosterPod } from './pod-roster.js';
import { podFilter, templateDigest } from './pod-spec.js';
import type { KubeLogger } from './pod-view.js';
import { type PodFeed, PodWatch } from './pod-watch.js';
import { ClaimPace } from './pool-balance.js';
import { POOL_SETTINGS, type PoolSettings } from './pool-settings.js';
import type { SandboxTemplate, SandboxTemplates } from './sandbox-template.js';
import { type PoolFigures, TemplatePool } from './template-pool.js';

export interface KubernetesDriverOptions {
  /** Controllers with the same name share one pool of pods. Lower-case letters, digits and "-", at most 20. */
  readonly installation: string;
  /** Makes the tokens that pods ask for; the same in all controllers of the installation, and nowhere else. */
  readonly tokenSecret: string;
  readonly templates: SandboxTemplates;
  readonly logger: KubeLogger;
  readonly settings?: Partial<PoolSettings>;
  /** Controls that pods need not enforce, by the names of runner/probe.py. */
  readonly allowMissingControls?: readonly string[];
  /** There is no other controller: pods that nobody has claimed end with this one, instead of waiting for another. */
  readonly alone?: boolean;
  /** This controller; default a random one. */
  readonly controller?: string;
}

export interface ClusterOptions {
  readonly namespace: string;
  /** Absent: the service account of the pod that this runs in, or KUBECONFIG. */
  readonly kubeconfigPath?: string;
  readonly context?: string;
}

/** What the driver is made of; a test brings its own. */
export interface KubernetesDriverParts {
  readonly api: PodApi & { close?(): void };
  readonly feed: PodFeed & { close(): Promise<void>; readonly state?: { readonly lastError: string | null } };
  readonly open?: OpenLink;
  /** Whether a template serves no claim before its pods were tried from inside. */
  readonly probed?: boolean;
}

const now = () => performance.now();

/** Sandboxes as pods, out of a warm pool that all controllers of an installation share. */
export class KubernetesDriver implements SandboxDriver {
  private readonly pools = new Map<string, TemplatePool>();
  private readonly proofs = new Map<string, PodProof>();
  private readonly claimed: ClaimedPods;
  private readonly reaper: PodReaper;
  private readonly unsubscribe: () => void;
  private readonly settings: PoolSettings;
  private readonly open: OpenLink;
  private readonly controller: string;
  private closed = false;

  constructor(
    private readonly options: KubernetesDriverOptions,
    private readonly parts: KubernetesDriverParts,
  ) {
    const settings = { ...POOL_SETTINGS, ...options.settings };
    const { api, feed } = parts;
    this.open = parts.open ?? ((address, times, signal) => PodLink.open(address, times, signal));
    const shared = { api, feed, open: this.open, settings, log: options.logger, now, pace: new ClaimPace(now) };
    this.settings = settings;
    this.controller = options.controller ?? randomUUID();
    for (const [name, template] of Object.entries(options.templates)) {
      const pool = new TemplatePool(this.kind(name, template), shared);
      this.pools.set(name, pool);
      if (parts.probed) this.proofs.set(name, this.proof(name, template, pool));
    }
    this.claimed = new ClaimedPods(shared);
    this.reaper = new PodReaper({ ...shared, holds: (uid) => this.claimed.holds(uid), templates: new Set(this.pools.keys()) });
    this.unsubscribe = feed.subscribe((change) => this.pools.get(change.pod.labels[LABELS.template] ?? '')?.observe(change));
    for (const pod of feed.pods.values()) this.pools.get(pod.labels[LABELS.template] ?? '')?.observe({ pod, gone: false });
    for (const pool of this.pools.values()) pool.start();
    void this.reaper.round();
  }

  /**
   * Connects to the cluster, takes over what other controllers left, starts filling the pools, and tries every wall of a pod from inside.
   *
   * @throws EtudeError SANDBOX_CONTROL_MISSING naming the control, and the setting that does without it
   * @throws EtudeError SANDBOX_UNAVAILABLE where the cluster can't be reached or refuses
   */
  static async start(options: KubernetesDriverOptions, cluster: ClusterOptions, signal: AbortSignal): Promise<KubernetesDriver> {
    const api = KubeApi.connect(cluster);
    const feed = new PodWatch(api, { selector: `${LABELS.pool}=${options.installation}`, logger: options.logger });
    feed.start();
    try {
      await feed.synced(signal);
    } catch (error) {
      const { lastError } = feed.state;
      await feed.close();
      api.close();
      throw lastError === null ? error : unreachable(lastError);
    }
    const driver = new KubernetesDriver(options, { api, feed, probed: true });
    try {
      await Promise.all([...driver.proofs.values()].map((proof) => proof.attempt()));
      return driver;
    } catch (error) {
      await driver.close();
      throw error;
    }
  }

  async claim(shape: SandboxShape, signal: AbortSignal, onQueued?: (before: number) => void): Promise<ClaimedSandbox> {
    signal.throwIfAborted();
    const pool = this.poolFor(shape);
    await this.proofs.get(shape.template)?.ensure();
    return this.claimFrom(pool, shape, signal, onQueued);
  }

  private async claimFrom(
    pool: TemplatePool,
    shape: SandboxShape,
    signal: AbortSignal,
    onQueued?: (before: number) => void,
  ): Promise<ClaimedSandbox> {
    if (this.closed) throw unavailable('the sandboxes are being shut down');
    const claim = newClaim();
    const { pod, link, token } = await pool.claim(claim, signal, onQueued);
    const place: PodPlace = {
      template: shape.template,
      pod: pod.name,
      uid: pod.uid ?? '',
      ip: pod.view?.ip ?? '',
      nonce: pod.view?.labels[LABELS.nonce] ?? '',
      claim,
    };
    pool.later(() => this.mark(place));
    return this.claimed.hold(place, token, link, (last) => pool.remove(pod, last));
  }

  async attach(text: string, signal: AbortSignal): Promise<ClaimedSandbox> {
    signal.throwIfAborted();
    const place = readPlace(text);
    const token = tokenOf(this.options.tokenSecret, place.nonce);
    const link = await this.reach(place, token, signal);
    const pool = this.pools.get(place.template);
    const pod = pool && [...pool.roster].find(({ uid }) => uid === place.uid);
    if (pod) pool.adopt(pod);
    pool?.later(() => this.mark(place));
    return this.claimed.hold(place, token, link, (last) => this.endAttached(place, pool, pod, last));
  }

  /** @throws EtudeError SANDBOX_UNAVAILABLE where the pods of the cluster can't be watched just now */
  check(): void {
    const { lastError = null } = this.parts.feed.state ?? {};
    if (lastError !== null) throw unreachable(lastError);
  }

  /** By template. */
  figures(): Record<string, PoolFigures> {
    return Object.fromEntries([...this.pools].map(([name, pool]) => [name, pool.figures()]));
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.reaper.close();
    const claimed = this.claimed.close();
    for (const pool of this.pools.values()) pool.stop(this.options.alone ?? false);
    await Promise.all([...this.pools.values()].map((pool) => pool.drained()));
    await claimed;
    this.unsubscribe();
    await this.parts.feed.close();
    this.parts.api.close?.();
  }

  private kind(name: string, template: SandboxTemplate) {
    const { installation, tokenSecret } = this.options;
    const context = { installation, controller: this.controller, filter: podFilter(template) };
    return { name, template, context, tokenSecret, digest: templateDigest(name, template, context) };
  }

  private proof(name: string, template: SandboxTemplate, pool: TemplatePool): PodProof {
    const { allowMissingControls: allowMissing = [], logger: log } = this.options;
    const shape = { template: name, memoryMiB: template.memoryMiB, diskMiB: template.diskMiB };
    return new PodProof(name, template, { allowMissing, log, claim: (signal) => this.claimFrom(pool, shape, signal) });
  }

  private poolFor({ template: name, memoryMiB, diskMiB }: SandboxShape): TemplatePool {
    const pool = this.pools.get(name);
    const template = this.options.templates[name];
    if (!pool || !template)
      throw new EtudeError('INVALID_ARGUMENT', `there is no sandbox template "${name}", only ${[...this.pools.keys()].join(', ')}`, {
        field: 'template',
      });
    for (const [field, asked, most] of [
      ['memory_mib', memoryMiB, template.memoryMiB],
      ['disk_mib', diskMiB, template.diskMiB],
    ] as const)
      if (asked > most)
        throw new EtudeError('INVALID_ARGUMENT', `${field} is ${asked}, and sandboxes of the template "${name}" have ${most}`, {
          field: `limits.${field}`,
        });
    return pool;
  }

  /** Tells other controllers and people, where the claim still stands. */
  private async mark({ pod, uid }: PodPlace): Promise<void> {
    if (!this.claimed.holds(uid)) return;
    const labels = { [LABELS.state]: 'claimed', [LABELS.controller]: this.controller };
    try {
      await this.parts.api.patchPod(pod, uid, { labels });
    } catch (error) {
      // Others find out when they try to bind it.
      this.options.logger.warn({ pod, err: error }, 'a sandbox pod could not be labelled as claimed');
    }
  }

  private async reach(place: PodPlace, token: string, signal: AbortSignal): Promise<PodConnection> {
    try {
      return await bindAgain(place, token, this.open, this.settings, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw unavailable(`the sandbox in the pod ${place.pod} is gone: ${(error as Error).message}`);
    }
  }

  private async endAttached(
    place: PodPlace,
    pool: TemplatePool | undefined,
    pod: RosterPod | undefined,
    link: PodConnection | null,
  ): Promise<void> {
    if (pool && pod) return pool.remove(pod, link);
    await link?.destroy();
    await this.parts.api.deletePod(place.pod, { uid: place.uid, graceSeconds: 1 }).catch((error: unknown) => {
      this.options.logger.warn({ pod: place.pod, err: error }, 'a sandbox pod could not be deleted yet');
    });
  }
}

const unreachable = (why: string) => unavailable(`the pods of the cluster can't be watched just now: ${why}`);
