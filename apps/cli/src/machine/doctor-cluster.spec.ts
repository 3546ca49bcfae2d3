import { describe, expect, it } from 'vitest';
import { CliError } from '../errors.js';
import { Output } from '../output.js';
import { doctorCluster, inspectCluster, type Kubectl } from './doctor-cluster.js';

const NAMES = ['gateway', 'rollout-worker', 'consolidation-worker', 'sandbox-controller'];
const labels = (name: string) => ({ 'app.kubernetes.io/name': `etude-${name}`, 'app.kubernetes.io/part-of': 'etude' });

/** Output of kubectl for an installation without problems, with only the fields that are read. */
function recorded() {
  const deployments = NAMES.map((name) => ({
    kind: 'Deployment',
    metadata: { name: `etude-${name}`, namespace: 'n', labels: labels('') },
    spec: { replicas: 2, selector: { matchLabels: labels(name) } },
    status: { readyReplicas: 2 },
  }));
  const pods = NAMES.map((name) => ({
    kind: 'Pod',
    metadata: { name: `etude-${name}-7d`, namespace: 'n', labels: labels(name) },
    spec: {},
    status: { containerStatuses: [{ ready: true, restartCount: 0, state: {} }] },
  }));
  const raw: Record<string, string> = {
    'gateway-7d:8080/proxy/readyz': '{"ready":true,"checks":{"redis":"ok","memory":"ok"}}',
    'gateway-7d:8080/proxy/metrics':
      'etude_queue_workers{queue="rollout.run"} 2\netude_queue_waiting{queue="rollout.run"} 5\netude_queue_dead{queue="rollout.run"} 0\n',
    'sandbox-controller-7d:8080/proxy/readyz': '{"ready":true,"checks":{"redis":"ok","sandboxes":"ok"}}',
  };
  return { deployments, pods, raw };
}

type Recorded = ReturnType<typeof recorded>;

function kubectlOf({ deployments, pods, raw }: Recorded): Kubectl {
  return (...args) => {
    if (args[1] !== '--raw') return JSON.stringify({ items: [...deployments, ...pods] });
    const [, answer] = Object.entries(raw).find(([path]) => args[2]?.endsWith(path)) ?? [];
    if (answer === undefined) throw new Error('Error from server (ServiceUnavailable)');
    return answer;
  };
}

const wrong = (seen: Recorded) => inspectCluster(kubectlOf(seen)).filter(({ ok }) => !ok);

describe('doctor of a cluster', () => {
  it('finds nothing wrong with an installation that works', () => {
    expect(wrong(recorded())).toEqual([]);
    expect(inspectCluster(kubectlOf(recorded()))).toHaveLength(5);
  });

  const cases: ReadonlyArray<readonly [string, RegExp, (seen: Recorded) => unknown]> = [
    ['services', /sandbox-controller is not installed/, (seen) => seen.deployments.pop()],
    ['services', /etude-gateway: 1 of 2 are ready/, ({ deployments }) => Object.assign(deployments[0]?.status ?? {}, { readyReplicas: 1 })],
    [
      'pods',
      /etude-rollout-worker-7d: ImagePullBackOff/,
      ({ pods }) => Object.assign(pods[1]?.status.containerStatuses[0] ?? {}, { state: { waiting: { reason: 'ImagePullBackOff' } } }),
    ],
    [
      'stores',
      /redis: maxmemory-policy is allkeys-lru/,
      ({ raw }) => (raw['gateway-7d:8080/proxy/readyz'] = '{"checks":{"redis":"ok: maxmemory-policy is allkeys-lru, not noeviction"}}'),
    ],
    ['stores', /ServiceUnavailable/, ({ raw }) => delete raw['gateway-7d:8080/proxy/readyz']],
    [
      'queues',
      /rollout.run has no worker, 5 wait/,
      ({ raw }) =>
        (raw['gateway-7d:8080/proxy/metrics'] = 'etude_queue_workers{queue="rollout.run"} 0\netude_queue_waiting{queue="rollout.run"} 5\n'),
    ],
    [
      'sandboxes',
      /sandboxes: the API server refuses/,
      ({ raw }) => (raw['sandbox-controller-7d:8080/proxy/readyz'] = '{"checks":{"sandboxes":"the API server refuses"}}'),
    ],
  ];
  it.each(cases)('names what is wrong with %s: %s', (name, state, spoil) => {
    const seen = recorded();
    spoil(seen);
    expect(wrong(seen)).toContainEqual(
      expect.objectContaining({
        name,
        state: expect.stringMatching(state),
        cost: expect.stringMatching(/./),
        fix: expect.stringMatching(/./),
      }),
    );
  });

  it('says that the cluster does not answer', () => {
    const out = new Output({ write: () => true }, { write: () => true }, true);
    expect(() => doctorCluster({ out }, 'etude', () => kubectlOf({ ...recorded(), raw: {} })('get', '--raw', ''))).toThrow(CliError);
  });
});
