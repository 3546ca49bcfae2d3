import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.js';
import type { Network } from './place.js';

/** The programs that have a certificate, each with its subject. */
const SUBJECTS = {
  apiserver: '/CN=kube-apiserver',
  admin: '/O=system:masters/CN=admin',
  kubelet: '/O=system:nodes/CN=system:node:node1',
  controllers: '/CN=system:kube-controller-manager',
  scheduler: '/CN=system:kube-scheduler',
  proxy: '/CN=system:kube-proxy',
  aggregator: '/CN=aggregator',
};
const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** Writes a certificate authority, keys and certificates to `dir/pki`, and a kubeconfig per client to `dir`. All are valid for a day. */
export async function writeIdentities(dir: string, { nodeIp, apiServiceIp }: Network): Promise<void> {
  const openssl = (...args: string[]) => run('openssl', args, { cwd: join(dir, 'pki') });
  await openssl('req', '-x509', ...EC, '-keyout', 'ca.key', '-out', 'ca.crt', '-days', '1', '-subj', '/CN=etude-test-cluster');
  await openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', 'accounts.key');
  await openssl('ec', '-in', 'accounts.key', '-pubout', '-out', 'accounts.pub');
  const names = ['DNS:localhost', 'DNS:kubernetes.default.svc', 'DNS:node1', 'IP:127.0.0.1', `IP:${apiServiceIp}`, `IP:${nodeIp}`];
  await writeFile(join(dir, 'pki', 'names'), `subjectAltName=${names.join(',')}`);
  await Promise.all(
    Object.entries(SUBJECTS).map(async ([name, subject]) => {
      await openssl('req', ...EC, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject);
      const authority = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-days', '1', '-extfile', 'names'];
      // A random serial number needs no counter file, which parallel calls would overwrite.
      await openssl('x509', '-req', '-in', `${name}.csr`, ...authority, '-set_serial', serial(), '-out', `${name}.crt`);
      if (name !== 'apiserver') await writeKubeconfig(dir, name, nodeIp);
    }),
  );
}

const serial = () => `0x${crypto.randomUUID().replaceAll('-', '')}`;

/** Writes JSON, which is also valid YAML. */
async function writeKubeconfig(dir: string, name: string, nodeIp: string): Promise<void> {
  const read = async (file: string) => (await readFile(join(dir, 'pki', file))).toString('base64');
  const cluster = { server: `https://${nodeIp}:6443`, 'certificate-authority-data': await read('ca.crt') };
  const user = { 'client-certificate-data': await read(`${name}.crt`), 'client-key-data': await read(`${name}.key`) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'etude-test', cluster }],
    users: [{ name, user }],
    contexts: [{ name: 'etude-test', context: { cluster: 'etude-test', user: name } }],
    'current-context': 'etude-test',
  };
  await writeFile(join(dir, `${name}.conf`), JSON.stringify(config, null, 2), { mode: 0o600 });
}
