import type { KubeApi } from './kube-api.js';
import type { PodChange } from './pod-store.js';
import type { PodView } from './pod-view.js';

/** The verbs that pods are made and ended with. */
export type PodApi = Pick<KubeApi, 'createPod' | 'getPod' | 'deletePod' | 'patchPod'>;

/** What `PodWatch` knows. */
export interface PodFeed {
  readonly pods: ReadonlyMap<string, PodView>;
  subscribe(listener: (change: PodChange) => void): () => void;
}
