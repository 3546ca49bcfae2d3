import { until } from '@etude/test-support/until';
import { afterAll, afterEach, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { cluster } from './cluster.js';
import { barePod } from './bare-pod.js';
import type { Faults } from './faults.js';

const IMAGE = process.env['ETUDE_SANDBOX_IMAGE'] ?? '';
const SERVE = `import http.server
http.server.HTTPServer(('0.0.0.0', 8000), http.server.BaseHTTPRequestHandler).serve_forever()`;

describe('faults of the cluster', () => {
  const { kubectl, faults, noFaults } = cluster();
  const namespace = `etude-faults-${process.pid}`;
  let podIp = '';

  const breaking = (what: string, test: (faults: Faults) => Promise<void>) =>
    it(what, async ({ skip }: TestContext) => (faults ? test(faults) : skip(noFaults)));
  /** true: something answers at the pod's address within a second. */
  const answers = () =>
    fetch(`http://${podIp}:8000`, { signal: AbortSignal.timeout(1_000) }).then(
      () => true,
      () => false,
    );
  const node = () => kubectl(['get', 'node', 'node1', '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}']);

  beforeAll(async () => {
    await kubectl(['create', 'namespace', namespace]);
    await kubectl(['-n', namespace, 'apply', '-f', '-'], JSON.stringify(barePod('server', IMAGE, SERVE)));
    await kubectl(['-n', namespace, 'wait', '--for=condition=Ready', 'pod/server', '--timeout=60s']);
    podIp = await kubectl(['-n', namespace, 'get', 'pod', 'server', '-o', 'jsonpath={.status.podIP}']);
    await until(answers, { what: 'the server in the pod' });
  });

  afterEach(async () => {
    await faults?.startApiServer(); // nothing happens where it runs
    await faults?.startKubelet();
  });

  afterAll(() => kubectl(['delete', 'namespace', namespace]));

  breaking('cut a pod off and join it again', async ({ cutPodNetwork, healPodNetwork }) => {
    await cutPodNetwork(podIp);
    expect(await answers()).toBe(false);
    await healPodNetwork(podIp);
    expect(await answers()).toBe(true);
  });

  breaking('stop and restart the API server while pods go on', async ({ killApiServer, startApiServer, restartApiServer }) => {
    await killApiServer();
    await expect(kubectl(['get', 'nodes', '--request-timeout=1s'])).rejects.toThrow('refused');
    expect(await answers()).toBe(true);
    await startApiServer();
    await restartApiServer();
    expect(await node()).toBe('True');
  });

  breaking('make the API server silent', async ({ pauseApiServer, resumeApiServer }) => {
    await pauseApiServer();
    await expect(kubectl(['get', 'nodes', '--request-timeout=1s'])).rejects.toThrow(/imeout|deadline/);
    await resumeApiServer();
    expect(await kubectl(['get', 'nodes'])).toContain('node1');
  });

  breaking('restart containerd while pods go on', async ({ restartContainerd }) => {
    await restartContainerd();
    expect(await answers()).toBe(true);
  });

  breaking('stop the kubelet until its node counts as lost', async ({ stopKubelet, startKubelet }) => {
    await stopKubelet();
    await until(async () => (await node()) === 'Unknown', { timeoutMs: 40_000, everyMs: 500, what: 'the loss of the node' });
    expect(await answers()).toBe(true);
    await startKubelet();
    expect(await node()).toBe('True');
  });
});
