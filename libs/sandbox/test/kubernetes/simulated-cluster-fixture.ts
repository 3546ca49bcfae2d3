import { setTimeout as sleep } from 'node:timers/promises';
import { EtudeError } from '@etude/contracts/errors';
import type { SupervisorFrame } from '../../src/frames.js';
import type { PodApi, PodManifest } from '../../src/kubernetes/kube-api.js';
import type { BindOutcome, OpenLink, PodConnection } from '../../src/kubernetes/pod-link.js';
import type { PodView } from '../../src/kubernetes/pod-state.js';
import { type PodFeed, PodStore } from '../../src/kubernetes/pod-watch.js';

interface SimulatedPod {
  view: PodView;
  owner: string | null;
  readonly links: Set<SimulatedLink>;
}

const status = { reason: '', message: '', conditions: {}, containers: [] };

/** A cluster and its supervisors in memory. Watches report changes with the requested delay. */
export class SimulatedCluster {
  readonly pods = new Map<string, SimulatedPod>();
  mostPods = 0;
  /** The most pods that started at the same time. */
  mostStarting = 0;
  creations = 0;
  /** The uid of the pod of every successful bind, except binds that retire a pod. */
  readonly bound: string[] = [];
  /** The error of each creation; null: creations succeed. */
  refuse: EtudeError | null = null;
  startMs = 2;
  /** true: open connections carry no data any more. */
  silent = false;
  private readonly feeds = new Set<SimulatedFeed>();
  private uids = 0;
  private version = 0;

  readonly api: PodApi = {
    createPod: (manifest) => this.create(manifest),
    getPod: (name) => Promise.resolve(this.pods.get(name)?.view ?? null),
    deletePod: async (name, { uid }) => this.delete(name, uid),
    labelPod: async (name, uid, labels) => {
      const pod = this.pods.get(name);
      if (pod?.view.uid === uid) this.change(pod, { labels: { ...pod.view.labels, ...labels } });
    },
    close: () => undefined,
  };

  readonly open: OpenLink = (address) => {
    const pod = [...this.pods.values()].find(({ view }) => `${view.name}/${view.uid}` === address.supervisor);
    if (pod?.view.phase !== 'Running') return Promise.reject(new Error('nobody answers'));
    const link = new SimulatedLink(pod, this);
    pod.links.add(link);
    return Promise.resolve(link);
  };

  /** The watch of a controller. It reports each change after `delayMs()`, in order. */
  feed(delayMs: () => number): SimulatedFeed {
    const feed = new SimulatedFeed(delayMs, () => this.feeds.delete(feed));
    for (const { view } of this.pods.values()) feed.apply('ADDED', view);
    this.feeds.add(feed);
    return feed;
  }

  /** Ends process 1 of the pod and all its connections. */
  end(pod: SimulatedPod): void {
    if (pod.view.phase === 'Succeeded') return;
    this.change(pod, { phase: 'Succeeded' });
    for (const link of pod.links) link.abandon();
  }

  private async create({ metadata, spec }: PodManifest): Promise<PodView> {
    await sleep(0);
    if (this.refuse) throw this.refuse;
    if (this.pods.has(metadata.name))
      throw new EtudeError('SANDBOX_UNAVAILABLE', 'there is one', { metadata: { exit: 'infra', reason: 'AlreadyExists', status: '409' } });
    this.uids += 1;
    this.creations += 1;
    const identity = { name: metadata.name, uid: `u${this.uids}`, labels: metadata.labels };
    const place = { ip: null, nodeName: 'node', user: spec.securityContext?.runAsUser ?? null, phase: 'Pending', deleting: false, status };
    const pod: SimulatedPod = { view: { ...identity, ...place, resourceVersion: '0' }, owner: null, links: new Set() };
    this.pods.set(metadata.name, pod);
    this.mostPods = Math.max(this.mostPods, this.pods.size);
    const starting = [...this.pods.values()].filter(({ view }) => view.phase === 'Pending');
    this.mostStarting = Math.max(this.mostStarting, starting.length);
    this.change(pod, {}, 'ADDED');
    setTimeout(() => pod.view.phase === 'Pending' && this.change(pod, { phase: 'Running', ip: '127.0.0.1' }), this.startMs);
    return pod.view;
  }

  private delete(name: string, uid: string): void {
    const pod = this.pods.get(name);
    if (pod?.view.uid !== uid) return;
    this.end(pod);
    this.change(pod, { deleting: true });
    setTimeout(() => {
      if (this.pods.get(name) !== pod) return;
      this.pods.delete(name);
      this.change(pod, {}, 'DELETED');
    }, this.startMs);
  }

  private change(pod: SimulatedPod, to: Partial<PodView>, type: 'ADDED' | 'MODIFIED' | 'DELETED' = 'MODIFIED'): void {
    this.version += 1;
    pod.view = { ...pod.view, ...to, resourceVersion: String(this.version) };
    for (const feed of this.feeds) feed.tell(type, pod.view);
  }
}

class SimulatedFeed extends PodStore implements PodFeed {
  readonly lastError = null;
  private before: Promise<void> = Promise.resolve();

  constructor(
    private readonly delayMs: () => number,
    private readonly left: () => void,
  ) {
    super();
  }

  tell(type: 'ADDED' | 'MODIFIED' | 'DELETED', view: PodView): void {
    this.before = Promise.all([this.before, sleep(this.delayMs())]).then(() => this.apply(type, view));
  }

  async close(): Promise<void> {
    this.left();
  }
}

class SimulatedLink implements PodConnection {
  private readonly end = Promise.withResolvers<void>();
  readonly gone = this.end.promise;
  ending = false;
  superseded = false;
  private over = false;

  constructor(
    private readonly pod: SimulatedPod,
    private readonly cluster: SimulatedCluster,
  ) {}

  get alive(): boolean {
    return !this.over && !this.ending;
  }

  async bind(claim: string): Promise<BindOutcome> {
    await sleep(0);
    if (this.over) return { outcome: 'silent', reason: 'it ended' };
    if (this.pod.owner !== null && this.pod.owner !== claim) return { outcome: 'claimed', reason: 'another claim holds it' };
    this.pod.owner = claim;
    if (claim.startsWith('claim-')) this.cluster.bound.push(this.pod.view.uid);
    return { outcome: 'bound' };
  }

  send(_frame: SupervisorFrame): void {}

  async receive(): Promise<SupervisorFrame | null> {
    await this.gone;
    return null;
  }

  ping(): boolean {
    return !this.cluster.silent;
  }

  complaint(): string {
    return '';
  }

  destroy(): Promise<void> {
    this.ending = true;
    if (!this.over) this.cluster.end(this.pod);
    return this.gone;
  }

  abandon(): void {
    this.over = true;
    this.pod.links.delete(this);
    this.end.resolve();
  }
}
