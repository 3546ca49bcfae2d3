import type { PodApi } from './kube-api.js';
import type { OpenLink } from './pod-link.js';
import type { KubeLogger } from './pod-view.js';
import type { PodFeed } from './pod-watch.js';
import type { ClaimPace } from './pool-balance.js';

/** How pods are claimed and replaced. Times in ms. */
export const POOL_SETTINGS = {
  /** Port of the supervisor in a pod. */
  port: 7070,
  /** Pods that may be starting at the same time. Starting one takes a quarter second of its node's processor. */
  startsMax: 3,
  /** Pods are replaced and removed when no claim came for this long, or when claims need them. */
  quietMs: 60,
  /** Then one each so often, about as long as a start keeps a processor busy. */
  spacingMs: 250,
  /** And without waiting in between when no claim came for this long. */
  calmMs: 1_500,
  /** A used pod is removed after this long at the latest. */
  removalMaxMs: 10_000,
  /** How long a claim waits for a pod. */
  claimWaitMs: 30_000,
  /** Claims of a template that may wait; the next is refused at once. */
  waitingMax: 1_000,
  /** A claimed pod whose lease nobody renewed for so long ends itself. */
  leaseMs: 15_000,
  leaseRenewMs: 5_000,
  connectTimeoutMs: 250,
  helloTimeoutMs: 1_000,
  /** For a free pod to answer a bind, before the next is asked. */
  bindTimeoutMs: 1_000,
  /** How long the watch may take to tell why a pod was lost. */
  explainMs: 3_000,
  /** Missing pods that this controller does not owe are made up when they are missing for so long. */
  adoptAfterMs: 3_000,
  /** Free pods of a former template are given up after so long. */
  outdatedMaxMs: 30_000,
  /** What was asked of the API server and not seen since is taken for undone after so long. */
  unseenMaxMs: 15_000,
  /** A pod that did not start within this is removed. */
  startTimeoutMs: 120_000,
  /** First wait after a pod could not be created or started; doubled up to `backoffMaxMs`. */
  backoffMs: 1_000,
  backoffMaxMs: 60_000,
  /** Finished, old and stuck pods are looked for this often. */
  reapEveryMs: 10_000,
};
export type PoolSettings = Readonly<typeof POOL_SETTINGS>;

/** What all pools of a driver and their parts share. */
export interface PoolDeps {
  readonly api: PodApi;
  readonly feed: PodFeed;
  readonly open: OpenLink;
  readonly log: KubeLogger;
  readonly settings: PoolSettings;
  /** In ms, monotonic. */
  readonly now: () => number;
  readonly pace: ClaimPace;
}
