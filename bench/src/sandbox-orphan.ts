import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { Child } from './sandbox-child.js';
import type { DriverChoice, KubernetesChoice } from './sandbox-drivers.js';

const Held = z.object({ place: z.string().nullable(), namespace: z.string() });
const WAIT_MS = 120_000;

function processesIn(namespace: string): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/ns/pid`) === namespace;
    } catch {
      return false; // the process ended meanwhile
    }
  }).length;
}

/** Whether the pod of a place still runs. */
async function podWatcher({ kubeconfigPath, namespace }: KubernetesChoice, place: string): Promise<() => Promise<boolean>> {
  const { KubeApi } = await import('@etude/sandbox/kubernetes/kube-api');
  const { readPlace } = await import('@etude/sandbox/kubernetes/pod-identity');
  const api = KubeApi.connect({ kubeconfigPath, namespace });
  const { pod: name, uid } = readPlace(place);
  return async () => {
    const pod = await api.getPod(name);
    return pod !== null && pod.uid === uid && (pod.phase === 'Running' || pod.phase === 'Pending') && !pod.deleting;
  };
}

/** Seconds from the SIGKILL of a controller to the end of the sandbox that it held, while code was spinning in it. */
export async function orphanSeconds(choice: DriverChoice): Promise<number> {
  const child = new Child({ do: 'hold', choice });
  const { place, namespace } = Held.parse(await child.line());
  const lives = choice.kind === 'kubernetes' ? await podWatcher(choice, place ?? '') : () => Promise.resolve(processesIn(namespace) > 0);
  if (!(await lives())) throw new Error('the sandbox is not there before its controller is killed');
  const start = performance.now();
  await child.kill();
  while (await lives()) {
    if (performance.now() - start > WAIT_MS) throw new Error(`an orphan outlived its controller by ${WAIT_MS} ms`);
    await sleep(50);
  }
  return (performance.now() - start) / 1_000;
}
