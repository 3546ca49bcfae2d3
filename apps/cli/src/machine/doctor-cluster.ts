import { spawnSync } from 'node:child_process';
import { z } from 'zod';
import type { Cli } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { type Finding, report } from './doctor.js';

/** Runs kubectl. Returns its stdout. @throws Error with its message */
export type Kubectl = (...args: readonly string[]) => string;

const SERVICES = ['gateway', 'rollout-worker', 'consolidation-worker', 'sandbox-controller'] as const;
type Service = (typeof SERVICES)[number];

const NAME = 'app.kubernetes.io/name';
const SecretKey = z.object({ name: z.string().default(''), key: z.string().default('') });
const Container = z.object({
  image: z.string(),
  env: z.array(z.object({ valueFrom: z.object({ secretKeyRef: SecretKey.optional() }).optional() })).default([]),
});
const Item = z.object({
  kind: z.string(),
  metadata: z.object({ name: z.string(), labels: z.record(z.string(), z.string()).default({}) }),
  spec: z.object({
    replicas: z.number().default(1),
    selector: z.object({ matchLabels: z.record(z.string(), z.string()).default({}) }).optional(),
    template: z.object({ spec: z.object({ containers: z.array(Container) }) }).optional(),
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
  readonly budgets: readonly Item[];
}

/** @returns the state and the problem; null: no problem */
type Look = (seen: Seen) => readonly [state: string, wrong: string | null];

const serviceOf = ({ spec }: Item): Service | undefined => SERVICES.find((name) => spec.selector?.matchLabels[NAME] === `etude-${name}`);
const containersOf = (seen: Seen) => seen.deployments.flatMap(({ spec }) => spec.template?.spec.containers ?? []);
const isReady = ({ status }: Item) => status.containerStatuses.length > 0 && status.containerStatuses.every((one) => one.ready);
const listed = (names: readonly string[]) => (names.length === 0 ? null : names.join(', '));

/** The answer of a ready pod of a service at a path of its health port, through the API server. */
function ask({ kubectl, pods }: Seen, service: Service, path: string): string {
  const pod = pods.find((one) => one.metadata.labels[NAME] === `etude-${service}` && isReady(one));
  if (pod === undefined) throw new Error(`no pod of ${service} is ready`);
  return kubectl('get', '--raw', `/api/v1/namespaces/{namespace}/pods/${pod.metadata.name}:8080/proxy${path}`);
}

/** Values of one metric by the value of its only label, '' for a metric without labels. */
function metric(text: string, name: string): Map<string, number> {
  const lines = text.matchAll(new RegExp(`^${name}(?:\\{\\w+="([^"]*)"\\})? (\\S+)$`, 'gm'));
  return new Map([...lines].map(([, label = '', value]) => [label, Number(value)]));
}

function services({ deployments, stores }: Seen): ReturnType<Look> {
  const missing = SERVICES.filter((name) => !deployments.some((one) => serviceOf(one) === name)).map((name) => `${name} is not installed`);
  const late = [...deployments, ...stores]
    .filter(({ spec, status }) => status.readyReplicas < spec.replicas)
    .map(({ metadata, spec, status }) => `${metadata.name}: ${status.readyReplicas} of ${spec.replicas} are ready`);
  return [`${deployments.length} services, ${stores.length} stores`, listed([...missing, ...late])];
}

function versions(seen: Seen): ReturnType<Look> {
  const images = [...new Set(containersOf(seen).map(({ image }) => image))];
  return [images.join(', '), images.length > 1 ? `${images.length} different images` : null];
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

/** Compares names of keys only, and reads no value. */
function secrets(seen: Seen): ReturnType<Look> {
  const needed = new Map<string, Set<string>>();
  for (const { valueFrom } of containersOf(seen).flatMap(({ env }) => env)) {
    const { name, key } = valueFrom?.secretKeyRef ?? {};
    if (name && key) needed.set(name, (needed.get(name) ?? new Set()).add(key));
  }
  const keysOf = (name: string) => {
    try {
      return new Set(seen.kubectl('get', 'secret', name, '-o', 'go-template={{range $key, $value := .data}}{{$key}} {{end}}').split(' '));
    } catch {
      return new Set<string>();
    }
  };
  const missing = [...needed].flatMap(([name, keys]) => {
    const known = keysOf(name);
    return [...keys].filter((key) => !known.has(key)).map((key) => `${name} lacks ${key}`);
  });
  return [[...needed.keys()].join(', '), listed(missing)];
}

/** A note after "ok: " is for operators too, such as a Redis that may evict. */
function storesOf(seen: Seen): ReturnType<Look> {
  const { checks } = Readiness.parse(JSON.parse(ask(seen, 'gateway', '/readyz')));
  const said = Object.entries(checks).filter(([, text]) => text !== 'ok');
  return [Object.keys(checks).join(', '), listed(said.map(([name, text]) => `${name}: ${text.replace(/^ok: /, '')}`))];
}

function queues(seen: Seen): ReturnType<Look> {
  const text = ask(seen, 'gateway', '/metrics');
  const workers = metric(text, 'etude_queue_workers');
  const dead = metric(text, 'etude_queue_dead');
  if (workers.size === 0) throw new Error('the gateway shows no queues');
  // A worker that is scaled by its queue has no pod while nothing waits.
  const idle = [...metric(text, 'etude_queue_waiting')]
    .filter(([queue, jobs]) => jobs > 0 && !workers.get(queue))
    .map(([queue, jobs]) => `${queue} has no worker, ${jobs} wait`);
  const died = [...dead].filter(([, count]) => count > 0).map(([queue, count]) => `${queue} has ${count} dead letters`);
  return [`${workers.size} queues`, listed([...idle, ...died])];
}

function sandboxes(seen: Seen): ReturnType<Look> {
  const { checks } = Readiness.parse(JSON.parse(ask(seen, 'sandbox-controller', '/readyz')));
  const bad = Object.entries(checks).filter(([, text]) => !text.startsWith('ok'));
  const text = ask(seen, 'sandbox-controller', '/metrics');
  const [warm, wait] = ['warm', 'claims_waiting'].map((name) => metric(text, `etude_sandbox_${name}`).get('') ?? 0);
  const short = warm === 0 && wait! > 0 ? [`${wait} executions wait, and no sandbox is free`] : [];
  return [`${warm} are ready`, listed([...bad.map(([name, why]) => `${name}: ${why}`), ...short])];
}

function budgetsOf({ deployments, budgets: known }: Seen): ReturnType<Look> {
  const covered = new Set(known.map(serviceOf));
  const bare = deployments.filter((one) => one.spec.replicas > 1 && !covered.has(serviceOf(one)));
  return [`${known.length} budgets`, listed(bare.map(({ metadata }) => `${metadata.name} has none`))];
}

const CHECKS: ReadonlyArray<readonly [name: string, needed: boolean, look: Look, cost: string, fix: string]> = [
  ['services', true, services, 'their work waits', 'kubectl describe deployment NAME, and kubectl logs deployment/NAME'],
  ['version', true, versions, 'services of different versions misread work', 'set one image.tag, or wait for the end of the upgrade'],
  ['pods', true, running, 'fewer pods work', 'kubectl describe pod NAME shows the image, secret or node that is missing'],
  ['secrets', true, secrets, "new pods don't start", 'add the key, or let the chart make its secrets'],
  ['stores', true, storesOf, 'accepted work can be lost or waits', 'docs/operations.md lists what Redis and Qdrant need'],
  ['queues', true, queues, 'work waits or has failed', 'raise the replicas of the worker; ./etude queues dead shows what failed'],
  ['sandboxes', true, sandboxes, 'no code runs, or it waits', 'docs/kubernetes.md; kubectl get events in the namespace of the sandboxes'],
  ['budgets', false, budgetsOf, 'draining a node can stop a whole service', 'let the chart make its PodDisruptionBudgets'],
];

const list = (kubectl: Kubectl, kinds: string) =>
  Listed.parse(JSON.parse(kubectl('get', kinds, '-l', 'app.kubernetes.io/part-of=etude', '-o', 'json'))).items;

/** Checks an installation from outside. Changes nothing and reads no secret. @throws Error if the cluster doesn't answer */
export function inspectCluster(kubectl: Kubectl): Finding[] {
  const items = list(kubectl, 'deployments,statefulsets,pods,poddisruptionbudgets');
  const of = (kind: string) => items.filter((item) => item.kind === kind);
  const [deployments, pods] = [of('Deployment').filter(serviceOf), of('Pod')];
  const seen = { kubectl, deployments, pods, stores: of('StatefulSet'), budgets: of('PodDisruptionBudget') };
  return CHECKS.map(([name, needed, look, cost, fix]) => {
    try {
      const [state, wrong] = look(seen);
      return wrong === null ? { name, needed, ok: true, state, cost: '', fix: '' } : { name, needed, ok: false, state: wrong, cost, fix };
    } catch (error) {
      return { name, needed, ok: false, state: (error as Error).message, cost, fix };
    }
  });
}

/** kubectl with its own settings: KUBECONFIG and the current context. */
const kubectlIn =
  (namespace: string): Kubectl =>
  (...args) => {
    const given = args.map((arg) => arg.replace('{namespace}', namespace));
    const run = spawnSync('kubectl', ['-n', namespace, ...given], { encoding: 'utf8', timeout: 20_000, maxBuffer: 64 * 1024 * 1024 });
    if (run.status === 0) return run.stdout;
    throw new Error((run.error?.message ?? run.stderr).trim().split('\n').at(-1));
  };

/** `etude doctor --cluster`: returns 0 if all needed checks pass, else 4. */
export function doctorCluster(cli: Pick<Cli, 'out'>, namespace: string, kubectl = kubectlIn(namespace)): number {
  let findings: Finding[];
  try {
    findings = inspectCluster(kubectl);
  } catch (error) {
    const hint = ['kubectl uses KUBECONFIG and its current context; --namespace names the namespace of the installation'];
    throw new CliError(EXIT.unavailable, `the cluster doesn't answer: ${(error as Error).message}`, hint);
  }
  return report(cli, findings, 'The installation works.', 'The installation has problems');
}
