import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { podProblem, podView, type PodView, START_PATIENCE_MS } from './pod-state.js';

/** Statuses that Kubernetes 1.34 wrote after real failures, without addresses and ids. */
const captured = JSON.parse(readFileSync(new URL('./pod-statuses.json', import.meta.url), 'utf8')) as Record<string, { status: object }>;
const view = (name: string): PodView => podView({ ...captured[name] });
/** Statuses that a cluster with one node can't produce, taken from the source code of the control plane. */
const variant = (name: string, status: object): PodView => podView({ ...captured[name], status: { ...captured[name]?.status, ...status } });
const disruption = (reason: string, message: string) => ({
  conditions: [{ type: 'DisruptionTarget', status: 'True', reason, message }],
});

describe('podProblem', () => {
  it.each([
    ['image missing, first try', 'image_pull', false, /ErrImagePull.*connection refused/],
    ['image missing, backing off', 'image_pull', false, /ImagePullBackOff.*connection refused/],
    ['registry unknown', 'image_pull', false, /no such host/],
    ['image never pulled', 'image_pull', true, /pull policy of Never/],
    ['image name invalid', 'image_pull', true, /must be lowercase/],
    ['no node matches', 'capacity', false, /didn't match Pod's node affinity/],
    ['no node is large enough', 'capacity', false, /Insufficient memory/],
    ['out of memory, container known', 'oomkilled', true, /more memory than its limit/],
    ['out of memory', 'oomkilled', true, /more memory than its limit/],
    ['emptyDir full', 'disk', true, /Usage of EmptyDir volume "s" exceeds the limit "8Mi"/],
    ['evicted by API, still running', 'evicted', true, /EvictionByEvictionAPI/],
    ['evicted by API', 'evicted', true, /Eviction API: evicting/],
    ['node silent', 'node_lost', false, /node2 does not report/],
    ['node silent, tainted', 'node_lost', true, /node2 does not report.*NoExecute/],
    ['node deleted', 'node_lost', true, /node2 is gone: PodGC: node no longer exists/],
    ['deadline', 'infra', true, /activeDeadlineSeconds/],
    ['ConfigMap missing', 'infra', false, /CreateContainerConfigError.*configmap "none" not found/],
    ['command missing', 'infra', true, /StartError.*no such file or directory/],
    ['ended with 0', 'infra', true, /the supervisor exited/],
    ['ended with 3', 'kernel_lost', true, /exit code 3/],
    ['ended by SIGSEGV', 'kernel_lost', true, /exit code 139/],
    ['deleted, still running', 'evicted', true, /deleted by somebody else/],
    ['deleted', 'evicted', true, /deleted by somebody else/],
  ] as const)('tells %s', (name, exit, final, message) => {
    expect(podProblem(view(name))).toEqual({ exit, final, message: expect.stringMatching(message) });
  });

  it.each([
    ['node without memory', { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' }, 'evicted'],
    ['preempted', disruption('PreemptionByScheduler', 'default-scheduler: preempting to accommodate a higher priority pod'), 'evicted'],
    ['taken by the kubelet', disruption('TerminationByKubelet', 'The node was low on resource: memory.'), 'evicted'],
    ['tainted by an operator', disruption('DeletionByTaintManager', 'Taint manager: deleting due to NoExecute taint'), 'evicted'],
    ['shut down with its node', { phase: 'Failed', reason: 'Terminated', message: 'imminent node shutdown' }, 'evicted'],
    [
      'disk limit',
      { phase: 'Failed', reason: 'Evicted', message: 'Pod ephemeral local storage usage exceeds the total limit of containers 16Mi.' },
      'disk',
    ],
    ['no room on its node', { phase: 'Failed', reason: 'OutOfcpu', message: "Node didn't have enough resource: cpu" }, 'capacity'],
    ['refused by its node', { phase: 'Failed', reason: 'NodeAffinity', message: 'Predicate NodeAffinity failed' }, 'infra'],
    ['node lost', { phase: 'Failed', reason: 'NodeLost', message: 'Node node2 which was running pod is unresponsive' }, 'node_lost'],
    ['unknown', { phase: 'Unknown' }, 'node_lost'],
    [
      'node started again',
      { phase: 'Failed', containerStatuses: [{ state: { terminated: { reason: 'ContainerStatusUnknown', exitCode: 137 } } }] },
      'node_lost',
    ],
    [
      'evicted, its container removed before its end was read',
      {
        phase: 'Failed',
        reason: 'Evicted',
        message: 'The node was low on resource: memory.',
        containerStatuses: [{ state: { terminated: { reason: 'ContainerStatusUnknown', exitCode: 137 } } }],
      },
      'evicted',
    ],
    ['failed without a word', { phase: 'Failed', containerStatuses: [] }, 'infra'],
  ] as const)('tells what a single node does not show: %s', (_, status, exit) => {
    expect(podProblem(variant('running', status))).toMatchObject({ exit, final: true });
  });

  it('reports no problem of a pod that runs or starts', () => {
    expect(podProblem(view('running'))).toBeNull();
    expect(podProblem(variant('running', { phase: 'Pending', conditions: [], containerStatuses: [] }))).toBeNull();
    expect(podProblem(variant('running', { containerStatuses: [{ state: { waiting: { reason: 'ContainerCreating' } } }] }))).toBeNull();
  });

  it('makes a start problem final after a minute, and a refused image at once', () => {
    expect(podProblem(view('registry unknown'), START_PATIENCE_MS)).toMatchObject({ final: true });
    expect(podProblem(view('ConfigMap missing'), START_PATIENCE_MS)).toMatchObject({ final: true });
    expect(podProblem(view('no node matches'), START_PATIENCE_MS)).toMatchObject({ final: false });
    const message = 'failed to pull and unpack image "r/x:1": failed to resolve reference "r/x:1": r/x:1: not found';
    const refused = variant('running', {
      phase: 'Pending',
      containerStatuses: [{ state: { waiting: { reason: 'ErrImagePull', message } } }],
    });
    expect(podProblem(refused)).toMatchObject({ exit: 'image_pull', final: true });
  });

  it('ignores an init container that ended with exit code 0', () => {
    const done = { state: { terminated: { reason: 'Completed', exitCode: 0 } } };
    expect(podProblem(variant('running', { initContainerStatuses: [done] }))).toBeNull();
    const failed = { state: { terminated: { reason: 'Error', exitCode: 1 } } };
    expect(
      podProblem(variant('running', { phase: 'Failed', initContainerStatuses: [failed], containerStatuses: [{ state: { waiting: {} } }] })),
    ).toMatchObject({ exit: 'kernel_lost' });
  });
});
