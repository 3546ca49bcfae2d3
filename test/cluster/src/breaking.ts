import type { TestContext } from 'vitest';
import type { Cluster } from './cluster.js';
import type { Faults } from './faults.js';
import { type PodFaults, podFaultsOf } from './pod-faults.js';

/** For tests that break the cluster: where that is not ours to break, they are skipped, and told why. */
export const breaking =
  ({ faults, noFaults, dir }: Cluster) =>
  (test: (faults: Faults & PodFaults) => Promise<void>) =>
  async ({ skip }: TestContext): Promise<void> =>
    faults ? test({ ...faults, ...podFaultsOf(dir) }) : skip(noFaults);
