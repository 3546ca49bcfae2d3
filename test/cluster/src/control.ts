import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { run } from './command.js';
import { type Daemon, daemonRuns, logOf } from './daemons.js';
import { kubeconfigOf, type Place } from './place.js';

const READY_MS = 90_000;

export const kubectl = ({ dir, programs }: Place, args: readonly string[], input?: string): Promise<string> =>
  run(join(programs, 'kubectl'), ['--kubeconfig', kubeconfigOf(dir), ...args], { input });

/** containerd's own client, in the namespace that the kubelet uses. */
export const ctr = ({ dir }: Place, ...args: string[]): Promise<string> =>
  run('ctr', ['-a', join(dir, 'containerd.sock'), '-n', 'k8s.io', ...args]);

/** A check that succeeds once the program does its work. */
const QUESTIONS: Partial<Record<Daemon, (place: Place) => Promise<unknown>>> = {
  containerd: (place) => ctr(place, 'images', 'ls', '-q'),
  apiserver: (place) => kubectl(place, ['get', '--raw', '/readyz']),
  controllers: (place) => kubectl(place, ['get', 'serviceaccount', 'default']), // Kubernetes admits no pod without this account
  kubelet: (place) => kubectl(place, ['wait', '--for=condition=Ready', 'node/node1', '--timeout=1s']),
};

/** Waits until the program is ready. @throws Error with the end of its log, at once if the program has ended */
export async function becomesReady(place: Place, name: Daemon): Promise<void> {
  const ask = QUESTIONS[name];
  if (!ask) return;
  let last = '';
  const asked = async () => {
    try {
      await ask(place);
      return true;
    } catch (error) {
      last = String(error);
      if (!(await daemonRuns(place, name))) throw new Error('the program ended', { cause: error });
      return false;
    }
  };
  await until(asked, { timeoutMs: READY_MS, everyMs: 100, what: name }).catch(async (error: unknown) => {
    throw new Error(`${name}: ${String(error)}\n${last}\nThe log in ${place.dir}/log ends with:\n${await logOf(place, name)}`, {
      cause: error,
    });
  });
}
