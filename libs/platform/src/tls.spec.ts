import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type ConnectionOptions } from 'node:tls';
import { listenGrpc } from '@etude/contracts/grpc-server';
import { makeCertificates, type TestCertificates } from '@etude/test-support/certificates';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { httpServer, serverTls, tlsConfig } from './tls.js';

let dir: string;
let ours: TestCertificates;
let others: TestCertificates;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'etude-tls-'));
  ours = makeCertificates(join(dir, 'ours'));
  others = makeCertificates(join(dir, 'others'), 'other');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const settings = ({ cert, key }: TestCertificates, more = {}) =>
  tlsConfig.parse({ ETUDE_TLS_CERT_PATH: cert, ETUDE_TLS_KEY_PATH: key, ...more });

/** The name in the certificate that a server shows, or the code of the refusal. */
async function shownBy(port: number, { ca }: TestCertificates, own?: TestCertificates): Promise<string> {
  const mine = own ? { cert: readFileSync(own.cert), key: readFileSync(own.key) } : {};
  const options: ConnectionOptions = { host: '127.0.0.1', port, ca: readFileSync(ca), ALPNProtocols: ['h2', 'http/1.1'], ...mine };
  const socket = connect(options);
  try {
    await once(socket, 'secureConnect');
    const { CN } = socket.getPeerCertificate().subject;
    // In TLS 1.3 a server refuses a client's certificate after the handshake, by an alert or by closing the connection.
    socket.write('GET / HTTP/1.0\r\n\r\n');
    return await Promise.race([once(socket, 'data').then(() => String(CN)), once(socket, 'close').then(() => 'closed')]);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  } finally {
    socket.destroy();
  }
}

/** A gRPC and an HTTP server with these settings; returns their ports. */
async function servers(config: ReturnType<typeof settings>, everyMs = 10) {
  const tls = serverTls(config, () => undefined, everyMs)!;
  const grpc = await listenGrpc('127.0.0.1', 0, () => undefined, tls.grpc);
  const http = httpServer(tls, (_request, response) => response.end('hello'));
  await once(http.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(async () => {
    tls.close();
    http.close();
    await grpc.close(0);
  });
  return [grpc.port, (http.address() as AddressInfo).port];
}

it('speaks TLS on gRPC and HTTP, which callers can check by its authority', async () => {
  for (const port of await servers(settings(ours))) {
    expect(await shownBy(port, ours)).toBe('localhost');
    expect(await shownBy(port, others)).toMatch(/SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE/);
  }
});

it('lets nobody in without a certificate of the client authority, where one is set', async () => {
  for (const port of await servers(settings(ours, { ETUDE_TLS_CLIENT_CA_PATH: others.ca }))) {
    expect(await shownBy(port, ours, others)).toBe('localhost');
    for (const wrong of [undefined, ours]) expect(await shownBy(port, ours, wrong)).toMatch(/^ERR_SSL|ECONNRESET|closed/);
  }
});

it('takes a new certificate without a restart', async () => {
  const [cert, key] = [join(dir, 'live.pem'), join(dir, 'live.key')];
  copyFileSync(ours.cert, cert);
  copyFileSync(ours.key, key);
  const ports = await servers(settings({ ca: ours.ca, cert, key }));
  copyFileSync(others.key, key);
  copyFileSync(others.cert, cert);
  for (const port of ports) {
    const shown = await until(async () => (await shownBy(port, others)) === 'other', { what: 'the new certificate is shown' });
    expect(shown).toBe(true);
  }
});

it('names what is wrong with its files', () => {
  const start = (config: ReturnType<typeof settings>) => () => serverTls(config, () => undefined);
  expect(serverTls(tlsConfig.parse({}), () => undefined)).toBeNull();
  expect(start(tlsConfig.parse({ ETUDE_TLS_CERT_PATH: ours.cert }))).toThrow('ETUDE_TLS_KEY_PATH');
  expect(start(settings({ ...ours, key: others.key }))).toThrow(/key values mismatch/);
  expect(start(settings({ ...ours, cert: '/no/such.pem' }))).toThrow('/no/such.pem');
});
