import { copyFile, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { kubectl } from './control.js';
import { startDaemon } from './daemons.js';
import { type GoProgram, goProgram, sourcesOf } from './go-programs.js';
import type { Place } from './place.js';
import { type Note, root } from './settings.js';

/** Starts the operator and the metrics adapter of KEDA on the node. Needs `startDns`. */
export async function startKeda(place: Place, note: Note): Promise<void> {
  await kubectl(place, ['apply', '--server-side', '-k', join(await sourcesOf('keda-operator'), 'config/crd')]);
  await kubectl(place, ['wait', '--for=condition=Established', 'crd', '--all']);
  await prepare(place, note, 'keda-operator', 'keda-adapter');
  await startDaemon(place, 'kedaOperator');
  await startDaemon(place, 'kedaAdapter');
  await serve(place, 6444);
}

/** Starts a Prometheus that scrapes these pods, and prometheus-adapter with the documented rules. Needs `startDns`. */
export async function startPrometheus(
  place: Place,
  note: Note,
  { address, namespace }: { readonly address: string; readonly namespace: string },
): Promise<void> {
  await prepare(place, note, 'prometheus-adapter');
  const scraped = { job_name: 'etude', static_configs: [{ targets: [address], labels: { namespace } }] };
  const config = { global: { scrape_interval: '2s' }, scrape_configs: [scraped] };
  await writeFile(join(place.dir, 'prometheus.json'), JSON.stringify(config));
  await copyFile(join(root, 'k8s/prometheus-adapter.example.yaml'), join(place.dir, 'adapter.yaml'));
  await startDaemon(place, 'prometheus');
  await startDaemon(place, 'prometheusAdapter');
  await serve(place, 6445);
}

async function prepare({ dir, network }: Place, note: Note, ...names: GoProgram[]): Promise<void> {
  const serving = join(dir, 'serving');
  await mkdir(serving, { recursive: true });
  const files = { 'tls.crt': 'apiserver.crt', 'tls.key': 'apiserver.key', 'ca.crt': 'ca.crt' };
  for (const [name, from] of Object.entries(files)) await copyFile(join(dir, 'pki', from), join(serving, name));
  await writeFile(join(dir, 'dns.conf'), `nameserver ${network.nodeIp}\n`);
  for (const name of names) {
    await rm(join(dir, name), { force: true });
    await symlink(await goProgram(name, note), join(dir, name));
  }
}

/** Makes the program at this port of the node the cluster's API of external metrics. */
async function serve(place: Place, port: number): Promise<void> {
  const metadata = { name: `metrics-${port}`, namespace: 'default' };
  const service = { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port }] } };
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': metadata.name } },
    addressType: 'IPv4',
    ports: [{ port }],
    endpoints: [{ addresses: [place.network.nodeIp] }],
  };
  const group = 'external.metrics.k8s.io';
  const api = {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `v1beta1.${group}` },
    spec: {
      group,
      version: 'v1beta1',
      groupPriorityMinimum: 100,
      versionPriority: 100,
      insecureSkipTLSVerify: true,
      service: { ...metadata, port },
    },
  };
  await kubectl(place, ['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [service, slice, api] }));
  const answers = () => kubectl(place, ['get', '--raw', `/apis/${group}/v1beta1`]).catch(() => '');
  await until(answers, { timeoutMs: 60_000, everyMs: 500, what: `the API of external metrics at port ${port}` });
}
