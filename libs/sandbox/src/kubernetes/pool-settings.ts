import type { PodApi } from './kube-api.js';
import type { OpenLink } from './pod-link.js';
import type { KubeLogger } from './pod-state.js';
import type { PodFeed } from './pod-watch.js';

/** How pods are claimed and replaced. Times in ms. */
export const POOL_SETTINGS = {
  /** Port of the supervisor in a pod. */
  port: 7070,
  /** Maximum number of pods that start at the same time. A start takes a quarter second of its node's processor. */
  startsMax: 3,
  /** Claimed pods are replaced when no claim has come for this long, or sooner if claims need pods. */
  quietMs: 60,
  claimWaitMs: 30_000,
  /** Maximum number of waiting claims of a template. Further claims are refused at once. */
  waitingMax: 1_000,
  /** Lease of a claimed pod. The pod ends itself if its lease isn't renewed for this long. */
  leaseMs: 15_000,
  leaseRenewMs: 5_000,
  connectTimeoutMs: 250,
  helloTimeoutMs: 1_000,
  /** Time for a free pod to answer a bind, before the next pod is tried. */
  bindTimeoutMs: 1_000,
  /** Longest wait for the watch to report why a pod was lost. */
  explainMs: 3_000,
  /** After this long, this controller also replaces missing pods that other controllers should have replaced. */
  adoptAfterMs: 3_000,
  /** Free pods of a former version of the template are removed after this long. */
  outdatedMaxMs: 30_000,
  /** A requested pod counts as not created if it isn't seen within this time. */
  unseenMaxMs: 15_000,
  /** A pod that doesn't start within this time is removed. */
  startTimeoutMs: 120_000,
  /** First wait after a pod could not be created or started. Each further failure doubles the wait, up to `backoffMaxMs`. */
  backoffMs: 1_000,
  backoffMaxMs: 60_000,
  /** Time between two searches for finished, orphaned and stuck pods. */
  reapEveryMs: 10_000,
};
export type PoolSettings = Readonly<typeof POOL_SETTINGS>;

export interface PoolDeps {
  readonly api: PodApi;
  readonly feed: PodFeed;
  readonly open: OpenLink;
  readonly log: KubeLogger;
  readonly settings: PoolSettings;
  /** A pod's token is made from this secret and the pod's nonce. */
  readonly tokenSecret: string;
  /** The time of the last claim of any template, on the monotonic clock. */
  readonly lastClaim: { atMs: number };
}
