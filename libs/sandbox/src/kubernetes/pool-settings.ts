/** How pods are claimed and replaced. Times in ms. */
export interface PoolSettings {
  /** Port of the supervisor in a pod. */
  readonly port: number;
  /** Pods that may be starting at the same time. Starting one takes a quarter second of its node's processor. */
  readonly startsMax: number;
  /** Pods are replaced and removed when no claim came for this long, or when claims need them. */
  readonly quietMs: number;
  /** Then one each so often, about as long as a start keeps a processor busy. */
  readonly spacingMs: number;
  /** And without waiting in between when no claim came for this long. */
  readonly calmMs: number;
  /** A used pod is removed after this long at the latest. */
  readonly removalMaxMs: number;
  /** How long a claim waits for a pod. */
  readonly claimWaitMs: number;
  /** Claims of a template that may wait; the next is refused at once. */
  readonly waitingMax: number;
  /** A claimed pod whose lease nobody renewed for so long ends itself. */
  readonly leaseMs: number;
  readonly leaseRenewMs: number;
  readonly connectTimeoutMs: number;
  readonly helloTimeoutMs: number;
  /** For a free pod to answer a bind, before the next is asked. */
  readonly bindTimeoutMs: number;
  /** How long the watch may take to tell why a pod was lost. */
  readonly explainMs: number;
  /** Missing pods that this controller does not owe are made up when they are missing for so long. */
  readonly adoptAfterMs: number;
  /** Pods beyond the target are given up after so long. */
  readonly surplusAfterMs: number;
  /** What was asked of the API server and not seen since is taken for undone after so long. */
  readonly unseenMaxMs: number;
  /** A pod that did not start within this is removed. */
  readonly startTimeoutMs: number;
  /** First wait after a pod could not be created or started; doubled up to `backoffMaxMs`. */
  readonly backoffMs: number;
  readonly backoffMaxMs: number;
  /** Finished, old and stuck pods are looked for this often. */
  readonly reapEveryMs: number;
}

export const POOL_SETTINGS: PoolSettings = {
  port: 7070,
  startsMax: 3,
  quietMs: 60,
  spacingMs: 250,
  calmMs: 1_500,
  removalMaxMs: 10_000,
  claimWaitMs: 30_000,
  waitingMax: 1_000,
  leaseMs: 15_000,
  leaseRenewMs: 5_000,
  connectTimeoutMs: 250,
  helloTimeoutMs: 1_000,
  bindTimeoutMs: 1_000,
  explainMs: 3_000,
  adoptAfterMs: 3_000,
  surplusAfterMs: 30_000,
  unseenMaxMs: 15_000,
  startTimeoutMs: 120_000,
  backoffMs: 1_000,
  backoffMaxMs: 60_000,
  reapEveryMs: 10_000,
};
