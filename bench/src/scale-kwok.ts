import { spawn } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '@etude/test-cluster/command';
import type { ControlPlane } from '@etude/test-cluster/control-plane';
import { cacheDir } from '@etude/test-cluster/settings';
import { until } from '@etude/test-support/until';

/** Simulates kubelets: https://kwok.sigs.k8s.io */
const MODULE = 'sigs.k8s.io/kwok/cmd/kwok';
const VERSION = 'v0.8.0';
/** Time in ms from bound to running, as on a real node that has the image. */
const START_MS = { least: 500, most: 900 } as const;

/** Ends a program with the bench, even if the bench is killed. */
const TIED = ['setpriv', '--pdeathsig', 'KILL'] as const;

/** Number of parallel kubectl processes that create nodes. Each one creates its nodes one by one. */
const CHUNKS = 4;

/** Path of kwok, which Go builds once. The control plane needs Go too. @throws Error with the compiler's message */
async function kwokProgram(note: (text: string) => void): Promise<string> {
  const dir = join(cacheDir(), 'kwok', VERSION);
  const program = join(dir, 'kwok');
  if (existsSync(program)) return program;
  note(`building kwok ${VERSION}: once, about 3 minutes on two cores`);
  const next = `${dir}.${process.pid}`;
  await mkdir(next, { recursive: true });
  try {
    await run('go', ['install', `${MODULE}@${VERSION}`], { env: { GOBIN: next, CGO_ENABLED: '0' } });
    await rename(next, dir);
  } catch (error) {
    await rm(next, { recursive: true, force: true });
    if (!existsSync(program)) throw error; // otherwise another process has built the program
  }
  return program;
}

const stage = (kind: 'Node' | 'Pod', name: string, selector: readonly object[], delay: object, next: object) => ({
  apiVersion: 'kwok.x-k8s.io/v1alpha1',
  kind: 'Stage',
  metadata: { name: `${kind.toLowerCase()}-${name}` },
  spec: { resourceRef: { apiGroup: 'v1', kind }, selector: { matchExpressions: selector }, delay, next },
});

const READY = `conditions:
- { type: Ready, status: "True", reason: Simulated, message: "", lastTransitionTime: {{ Now | Quote }}, lastHeartbeatTime: {{ Now | Quote }} }
`;

const RUNNING = `phase: Running
startTime: {{ Now | Quote }}
podIP: {{ index ( PodIPsWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace ) 0 | Quote }}
conditions:
{{ range $type := ( list "Initialized" "ContainersReady" "Ready" ) }}
- { type: {{ $type }}, status: "True", lastTransitionTime: {{ Now | Quote }} }
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- { name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, restartCount: 0, state: { running: { startedAt: {{ Now | Quote }} } } }
{{ end }}
`;

/** kwok manages only nodes that have a stage. A pod runs a moment after it was bound, and is gone once it is deleted. */
const STAGES = [
  stage(
    'Node',
    'ready',
    [{ key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: 'NotIn', values: ['True'] }],
    {},
    {
      statusTemplate: READY,
    },
  ),
  stage(
    'Pod',
    'start',
    [
      { key: '.metadata.deletionTimestamp', operator: 'DoesNotExist' },
      { key: '.status.phase', operator: 'In', values: ['Pending'] },
    ],
    { durationMilliseconds: START_MS.least, jitterDurationMilliseconds: START_MS.most },
    { statusTemplate: RUNNING },
  ),
  // Deleting sets the grace period to 0, which kwok sees as another change. A second deletion would hit the next pod of that name.
  // The grace period is compared as text, because kwok compares no numbers.
  stage(
    'Pod',
    'end',
    [
      { key: '.metadata.deletionTimestamp', operator: 'Exists' },
      { key: '.metadata.deletionGracePeriodSeconds | tostring', operator: 'NotIn', values: ['0'] },
    ],
    {},
    { delete: true },
  ),
];

const RESOURCES = { cpu: '32', memory: '256Gi', pods: '110', 'ephemeral-storage': '100Gi' };

const node = (index: number) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: `simulated-${index}` },
  status: { capacity: RESOURCES, allocatable: RESOURCES },
});

/** The process that stands in for kubelets. */
export interface Kwok {
  readonly pid: number;
  end(): void;
}

const POD_LISTS = /^apiserver_request_total\{.*resource="pods",scope="cluster",.*verb="LIST".*\} (\S+)$/gm;

/**
 * Waits until kwok has listed the pods of each node. kwok lists node by node and bypasses the server's cache, which takes milliseconds without
 * pods. With 1,000 pods, it took 0.2 s of the API server's processor time per node, and stale answers started and ended pods that had the
 * name of an older pod.
 */
async function lookedAtNodes(plane: ControlPlane, count: number): Promise<void> {
  const lists = async () => {
    const metrics = await plane.kubectl(['get', '--raw', '/metrics']);
    return [...metrics.matchAll(POD_LISTS)].reduce((sum, [, made]) => sum + Number(made), 0);
  };
  await until(async () => (await lists()) >= count, { timeoutMs: 300_000, everyMs: 1_000, what: `kwok's look at ${count} nodes` });
}

/** Adds nodes that exist in the API server alone. */
export async function simulateNodes(plane: ControlPlane, count: number, note: (text: string) => void): Promise<Kwok> {
  const program = await kwokProgram(note);
  const config = join(plane.dir, 'stages.yaml');
  await writeFile(config, STAGES.map((one) => JSON.stringify(one)).join('\n---\n'));
  const all = Array.from({ length: count }, (_, index) => node(index));
  const chunks = Array.from({ length: CHUNKS }, (_, chunk) => all.filter((_one, index) => index % CHUNKS === chunk));
  await Promise.all(chunks.map((items) => plane.kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))));
  const flags = ['--manage-all-nodes', '--node-lease-duration-seconds=0', '--cidr', plane.podRange, '--config', config];
  const [enter, ...args] = [...TIED, ...plane.enter, program, '--kubeconfig', plane.kubeconfig, ...flags, '-v', 'ERROR'];
  const log = openSync(join(plane.dir, 'log', 'kwok.log'), 'w');
  const child = spawn(enter, args, { stdio: ['ignore', log, log] });
  await lookedAtNodes(plane, count);
  return { pid: child.pid ?? 0, end: () => void child.kill('SIGKILL') };
}
