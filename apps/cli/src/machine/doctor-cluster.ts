import { spawnSync } from 'node:child_process';
import { z } from 'zod';
import type { Cli } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { type Finding, report } from './doctor.js';

/** Runs kubectl. Returns its stdout. @throws Error with kubectl's message */
export type Kubectl = (...args: readonly string[]) => string;

const SERVICES = ['gateway', 'rollout-worker', 'consolidation-worker', 'sandbox-controller'] as const;
type Service = (typeof SERVICES)[number];

const NAME = 'app.kubernetes.io/name';
const Item = z.object({
  kind: z.string(),
  metadata: z.object({ name: z.string(), namespace: z.string(), labels: z.record(z.string(), z.string()).default({}) }),
  spec: z.object({
    replicas: z.number().default(1),
    selector: z.object({ matchLabels: z.record(z.string(), z.string()).default({}) }).optional(),
  }),
  status: z
    .object({
      readyReplicas: z.number().default(0),
      containerStatuses: z
        .array(
          z.object({
            ready: z.boolean(),
            restartCount: z.number(),
            state: z.object({ waiting: z.object({ reason: z.string().default('') }).optional() }),
          }),
        )
        .default([]),
    })
    .prefault({}),
});
type Item = z.infer<typeof Item>;
const Listed = z.object({ items: z.array(Item) });
const Readiness = z.object({ checks: z.record(z.string(), z.string()) });

interface Seen {
  readonly kubectl: Kubectl;
  readonly deployments: readonly Item[];
  readonly stores: readonly Item[];
  readonly pods: readonly Item[];
}

/** @returns the state, and the problem or null */
type Look = (seen: Seen) => readonly [state: string, wrong: string | null];

const serviceOf = ({ spec }: Item): Service | undefined => SERVICES.find((name) => spec.selector?.matchLabels[NAME] === `etude-${name}`);
const isReady = ({ status }: Item) => status.containerStatuses.length > 0 && status.containerStatuses.every((one) => one.ready);
const listed = (names: readonly string[]) => (names.length === 0 ? null : names.join(', '));

function ask({ kubectl, pods }: Seen, service: Service, path: string): string {
  const pod = pods.find((one) => one.metadata.labels[NAME] === `etude-${service}` && isReady(one));
  if (pod === undefined) throw new Error(`no pod of ${service} is ready`);
  const { name, namespace } = pod.metadata;
  return kubectl('get', '--raw', `/api/v1/namespaces/${namespace}/pods/${name}:8080/proxy${path}`);
}

function metric(text: string, name: string): Map<string, number> {
  const lines = text.matchAll(new RegExp(`^${name}\\{queue="([^"]*)"\\} (\\S+)$`, 'gm'));
  return new Map([...lines].map(([, queue = '', value]) => [queue, Number(value)]));
}

function services({ deployments, stores }: Seen): ReturnType<Look> {
  const missing = SERVICES.filter((name) => !deployments.some((one) => serviceOf(one) === name)).map((name) => `${name} is not installed`);
  const late = [...deployments, ...stores]
    .filter(({ spec, status }) => status.readyReplicas < spec.replicas)
    .map(({ metadata, spec, status }) => `${metadata.name}: ${status.readyReplicas} of ${spec.replicas} are ready`);
  return [`${deployments.length} services, ${stores.length} stores`, listed([...missing, ...late])];
}

function running({ pods }: Seen): ReturnType<Look> {
  const bad = pods.flatMap(({ metadata, status }) =>
    status.containerStatuses
      .map(({ state, ready: isUp, restartCount }) => state.waiting?.reason ?? (!isUp && restartCount > 0 ? `${restartCount} restarts` : ''))
      .filter(Boolean)
      .map((reason) => `${metadata.name}: ${reason}`),
  );
  const unplaced = pods
    .filter(({ status }) => status.containerStatuses.length === 0)
    .map(({ metadata }) => `${metadata.name}: not started`);
  return [`${pods.length} pods`, listed([...bad, ...unplaced])];
}

/** The readiness checks of a service. A note after "ok: " counts as a problem too, such as a Redis that may evict keys. */
const partsOf =
  (service: Service): Look =>
  (seen) => {
    const { checks } = Readiness.parse(JSON.parse(ask(seen, service, '/readyz')));
    const said = Object.entries(checks).filter(([, text]) => text !== 'ok');
    return [Object.keys(checks).join(', '), listed(said.map(([name, text]) => `${name}: ${text.replace(/^ok: /, '')}`))];
  };

function queues(seen: Seen): ReturnType<Look> {
  const text = ask(seen, 'gateway', '/metrics');
  const workers = metric(text, 'etude_queue_workers');
  const dead = metric(text, 'etude_queue_dead');
  if (workers.size === 0) throw new Error("the gateway's metrics list no queues");
  // A worker that is scaled by its queue's length has no pod while the queue is empty.
  const idle = [...metric(text, 'etude_queue_waiting')]
    .filter(([queue, jobs]) => jobs > 0 && !workers.get(queue))
    .map(([queue, jobs]) => `${queue} has no worker, ${jobs} wait`);
  const died = [...dead].filter(([, count]) => count > 0).map(([queue, count]) => `${queue} has ${count} dead letters`);
  return [`${workers.size} queues`, listed([...idle, ...died])];
}

const CHECKS: ReadonlyArray<readonly [name: string, look: Look, cost: string, fix: string]> = [
  ['services', services, 'jobs for these services wait', 'kubectl describe deployment NAME, and kubectl logs deployment/NAME'],
  ['pods', running, 'fewer pods do the work', 'kubectl describe pod NAME shows the image, secret or node that is missing'],
  ['stores', partsOf('gateway'), 'accepted work can be lost or waits', 'docs/operations.md lists what Redis and Qdrant need'],
  ['queues', queues, 'work waits or has failed', 'raise the replicas of the worker; ./etude queues dead shows what failed'],
  [
    'sandboxes',
    partsOf('sandbox-controller'),
    'code waits or never runs',
    'docs/kubernetes.md; kubectl get events in the namespace of the sandboxes',
  ],
];

/** Checks an installation from outside. Changes nothing and reads no secret. @throws Error if the cluster doesn't answer */
export function inspectCluster(kubectl: Kubectl): Finding[] {
  const said = kubectl('get', 'deployments,statefulsets,pods', '-l', 'app.kubernetes.io/part-of=etude', '-o', 'json');
  const { items } = Listed.parse(JSON.parse(said));
  const of = (kind: string) => items.filter((item) => item.kind === kind);
  const seen = { kubectl, deployments: of('Deployment').filter(serviceOf), pods: of('Pod'), stores: of('StatefulSet') };
  return CHECKS.map(([name, look, cost, fix]) => {
    try {
      const [state, wrong] = look(seen);
      const check = { name, needed: true, ok: wrong === null, state: wrong ?? state };
      return wrong === null ? { ...check, cost: '', fix: '' } : { ...check, cost, fix };
    } catch (error) {
      return { name, needed: true, ok: false, state: (error as Error).message, cost, fix };
    }
  });
}

const kubectlIn =
  (namespace: string): Kubectl =>
  (...args) => {
    const run = spawnSync('kubectl', ['-n', namespace, ...args], { encoding: 'utf8', timeout: 20_000, maxBuffer: 64 * 1024 * 1024 });
    if (run.status === 0) return run.stdout;
    throw new Error((run.error?.message ?? run.stderr).trim().split('\n').at(-1));
  };

/** `etude doctor --cluster`: returns 0 if all needed checks pass, else 4. */
export function doctorCluster(cli: Pick<Cli, 'out'>, namespace: string, kubectl = kubectlIn(namespace)): number {
  let findings: Finding[];
  try {
    findings = inspectCluster(kubectl);
  } catch (error) {
    const hint = ['kubectl uses KUBECONFIG and its current context; --namespace is the namespace of the installation'];
    throw new CliError(EXIT.unavailable, `the cluster doesn't answer: ${(error as Error).message}`, hint);
  }
  return report(cli, findings, 'The installation works.', 'The installation has problems');
}
