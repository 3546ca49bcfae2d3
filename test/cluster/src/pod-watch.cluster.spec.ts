import { KubeApi, type PodManifest } from '@etude/sandbox/kubernetes/kube-api';
import { podProblem } from '@etude/sandbox/kubernetes/pod-state';
import { PodWatch } from '@etude/sandbox/kubernetes/pod-watch';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cluster } from './cluster.js';
import { makeNamespace } from './pod-namespace.js';

const never = new AbortController().signal;

/** Stays Pending: it is cheap, and nothing but this test changes it. */
const pod = (name: string, spec: object = { nodeSelector: { 'etude.dev/no-such': 'node' } }): PodManifest => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { test: 'watch' } },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'sandbox', image: 'localhost/no-such-image:1', imagePullPolicy: 'Never' }],
    ...spec,
  },
});

describe('PodWatch on a real API server', () => {
  const test = cluster();
  let namespace = '';
  let api: KubeApi;

  beforeAll(async () => {
    namespace = await makeNamespace(test, 'watch', 'baseline');
    api = KubeApi.connect({ kubeconfigPath: test.kubeconfig, namespace });
  });

  afterAll(async () => {
    api?.close();
    await test.kubectl(['delete', 'namespace', namespace, '--wait=false']);
  });

  it('lists in pages of one moment, and hears of what comes and goes', async () => {
    await Promise.all(Array.from({ length: 12 }, (_, i) => api.createPod(pod(`pod-${i}`), never)));
    const first = await api.listPods('test=watch', { limit: 5 });
    expect(first.pods).toHaveLength(5);
    await api.createPod(pod('later'), never);
    const second = await api.listPods('test=watch', { limit: 50, continue: first.continue ?? '' });
    expect([second.pods.length, second.resourceVersion]).toEqual([7, first.resourceVersion]);

    const watch = new PodWatch(api, { selector: 'test=watch', pageSize: 5 });
    watch.start();
    await watch.synced(never);
    expect(watch.pods.size).toBe(13);
    const { uid } = await api.createPod(pod('last'), never);
    await until(() => watch.pods.get('last')?.uid === uid, { what: 'the new pod' });
    expect(await api.deletePod('last', { uid, graceSeconds: 0 })).toBe('deleted');
    await until(() => !watch.pods.has('last'), { what: 'the end of the pod' });
    expect(watch.state).toMatchObject({ relists: 1, lastError: null });
    await watch.close();
  });

  it('gets a bookmark before the server ends a watch', async () => {
    const { resourceVersion } = await api.listPods('test=none');
    const types: string[] = [];
    // A server says how far it is where something happened that the watch was not told of.
    const { uid } = await api.createPod(pod('passes-by', {}), never);
    for await (const event of api.watchPods('test=none', { resourceVersion, timeoutS: 6 }, never)) types.push(event.type);
    await api.deletePod('passes-by', { uid, graceSeconds: 0 });
    expect(types).toContain('BOOKMARK');
  });

  it('tells a missing image from a cluster without room, and both from a deletion', async () => {
    const watch = new PodWatch(api, { selector: 'test=watch' });
    watch.start();
    await watch.synced(never);
    await api.createPod(pod('no-image', {}), never);
    const exitOf = (name: string) => {
      const seen = watch.pods.get(name);
      return seen ? podProblem(seen)?.exit : undefined;
    };
    await until(() => exitOf('no-image') === 'image_pull', { what: 'the missing image' });
    await until(() => exitOf('pod-0') === 'capacity', { what: 'the missing node' });
    const ended: Array<string | undefined> = [];
    watch.subscribe(({ pod: seen, gone }) => {
      if (seen.name === 'no-image') ended.push(gone ? 'gone' : podProblem(seen)?.exit);
    });
    await test.kubectl(['delete', 'pod', 'no-image', '-n', namespace, '--grace-period=5', '--wait=false']);
    await until(() => ended.includes('gone'), { what: 'the end of the pod' });
    expect(ended).toContain('evicted');
    await watch.close();
  });
});
