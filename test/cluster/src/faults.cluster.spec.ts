import { until } from '@etude/test-support/until';
import { afterAll, afterEach, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { cluster } from './cluster.js';
import { barePod } from './bare-pod.js';
import type { Faults } from './faults.js';
import { makeNamespace } from './pod-namespace.js';

const IMAGE = process.env['ETUDE_SANDBOX_IMAGE'] ?? '';
const SERVE = `import http.server
http.server.HTTPServer(('0.0.0.0', 8000), http.server.BaseHTTPRequestHandler).serve_forever()`;

describe('faults of the cluster', () => {
  const { kubectl, faults, noFaults } = cluster();
  let namespace = '';
  let podIp = '';

  /** What breaks it; the test is skipped with the reason where it can't be broken. */
  const breaking = ({ skip }: TestContext): Faults => faults ?? skip(noFaults);
  /** true: something answers at the pod's address within this time. */
  const answers = (withinMs = 30_000) =>
    fetch(`http://${podIp}:8000`, { signal: AbortSignal.timeout(withinMs) }).then(
      () => true,
      () => false,
    );
  const node = () => kubectl(['get', 'node', 'node1', '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}']);

  beforeAll(async () => {
    namespace = await makeNamespace({ kubectl }, 'faults');
    await kubectl(['-n', namespace, 'apply', '-f', '-'], JSON.stringify(barePod('server', IMAGE, SERVE)));
    await kubectl(['-n', namespace, 'wait', '--for=condition=Ready', 'pod/server', '--timeout=150s']);
    podIp = await kubectl(['-n', namespace, 'get', 'pod', 'server', '-o', 'jsonpath={.status.podIP}']);
    await until(() => answers(), { what: 'the server in the pod' });
  });

  afterEach(async () => {
    await faults?.startApiServer(); // nothing happens where it runs
    await faults?.startKubelet();
  });

  afterAll(async () => {
    await faults?.settle();
    await kubectl(['delete', 'namespace', namespace]);
  });

  it('cuts a pod off and joins it again', async (context) => {
    const { cutPodNetwork, healPodNetwork } = breaking(context);
    await cutPodNetwork(podIp);
    expect(await answers(1_000)).toBe(false);
    await healPodNetwork(podIp);
    expect(await answers()).toBe(true);
  });

  it('stops and restarts the API server while pods go on', async (context) => {
    const { killApiServer, startApiServer, restartApiServer } = breaking(context);
    await killApiServer();
    await expect(kubectl(['get', 'nodes', '--request-timeout=1s'])).rejects.toThrow('refused');
    expect(await answers()).toBe(true);
    await startApiServer();
    await restartApiServer();
    // Until they have heard of it again, controllers may count a node as lost that goes on.
    await until(async () => (await node()) === 'True', { timeoutMs: 150_000, everyMs: 500, what: 'the node' });
  });

  it('makes the API server silent', async (context) => {
    const { pauseApiServer, resumeApiServer } = breaking(context);
    await pauseApiServer();
    await expect(kubectl(['get', 'nodes', '--request-timeout=1s'])).rejects.toThrow(/imeout|deadline/);
    await resumeApiServer();
    expect(await kubectl(['get', 'nodes'])).toContain('node1');
  });

  it('restarts containerd while pods go on', async (context) => {
    const { restartContainerd } = breaking(context);
    await restartContainerd();
    expect(await answers()).toBe(true);
  });

  it('stops the kubelet until its node counts as lost', async (context) => {
    const { settle, stopKubelet, startKubelet } = breaking(context);
    await settle();
    await stopKubelet();
    await until(async () => (await node()) === 'Unknown', { everyMs: 500, what: 'the loss of the node' });
    expect(await answers()).toBe(true);
    await startKubelet();
    expect(await node()).toBe('True');
  });
});
