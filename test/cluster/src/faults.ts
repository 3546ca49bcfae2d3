import { becomesReady, kubectl } from './control.js';
import { type Daemon, signalDaemon, startDaemon, stopDaemon } from './daemons.js';
import { inside } from './namespaces.js';
import type { Place } from './place.js';

/** What can go wrong around pods, each with its way back. A test that breaks something heals it before it ends. */
export interface Faults {
  /** The node falls silent; its pods go on running, and controllers that follow it count it as lost after about 12 s. */
  readonly stopKubelet: () => Promise<void>;
  readonly startKubelet: () => Promise<void>;
  /** The node is taken out of the cluster, and its pods with it as far as the API server knows. */
  readonly loseNode: () => Promise<void>;
  readonly returnNode: () => Promise<void>;
  readonly killApiServer: () => Promise<void>;
  readonly startApiServer: () => Promise<void>;
  /** Told to end, then started again: every watch ends, requests are refused for some seconds. */
  readonly restartApiServer: () => Promise<void>;
  /** Connections stay open and nothing comes over them, as behind a broken switch. */
  readonly pauseApiServer: () => Promise<void>;
  readonly resumeApiServer: () => Promise<void>;
  /**
   * Controllers, scheduler and kubelet start anew and see at once what is there. Those that missed the API server ask it again
   * after up to a minute, the longer the more often they missed it within two minutes (client-go's back-off), and count a node's
   * silence from then on. Whoever takes the API server away ends with this.
   */
  readonly settle: () => Promise<void>;
  readonly stopContainerd: () => Promise<void>;
  readonly startContainerd: () => Promise<void>;
  readonly restartContainerd: () => Promise<void>;
  readonly stopScheduler: () => Promise<void>;
  readonly startScheduler: () => Promise<void>;
  /** Every packet from and to a pod is dropped, without a word to either end. */
  readonly cutPodNetwork: (podIp: string) => Promise<void>;
  readonly healPodNetwork: (podIp: string) => Promise<void>;
}

/** Of a cluster that this project started; others can't be broken. */
export function faultsOf(place: Place): Faults {
  const stop = (name: Daemon) => stopDaemon(place, name);
  const start = async (name: Daemon) => {
    await startDaemon(place, name);
    await becomesReady(place, name);
  };
  const restart = async (name: Daemon) => {
    await stopDaemon(place, name, 'ask-first');
    await start(name);
  };
  const loseNode = async () => {
    await stop('kubelet');
    await kubectl(place, ['delete', 'node', 'node1']);
  };
  return {
    stopKubelet: () => stop('kubelet'),
    startKubelet: () => start('kubelet'),
    loseNode,
    returnNode: () => start('kubelet'),
    killApiServer: () => stop('apiserver'),
    startApiServer: () => start('apiserver'),
    restartApiServer: () => restart('apiserver'),
    pauseApiServer: () => signalDaemon(place, 'apiserver', 'STOP'),
    resumeApiServer: () => signalDaemon(place, 'apiserver', 'CONT'),
    settle: async () => {
      for (const name of ['controllers', 'scheduler', 'kubelet'] as const) await restart(name);
    },
    stopContainerd: () => stop('containerd'),
    startContainerd: () => start('containerd'),
    restartContainerd: () => restart('containerd'),
    stopScheduler: () => stop('scheduler'),
    startScheduler: () => start('scheduler'),
    cutPodNetwork: (podIp) => dropPackets(place, '-I', podIp),
    healPodNetwork: (podIp) => dropPackets(place, '-D', podIp),
  };
}

/** First in the table `raw`, so that connections which are tracked already are cut as well. */
async function dropPackets(place: Place, change: '-I' | '-D', podIp: string): Promise<void> {
  for (const side of ['-s', '-d']) await inside(place, 'iptables', '-w', '-t', 'raw', change, 'PREROUTING', side, podIp, '-j', 'DROP');
}
