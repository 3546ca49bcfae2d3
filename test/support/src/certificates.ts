import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of PEM files. */
export interface TestCertificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { stdio: 'ignore' });

/** Makes a certificate authority and a certificate signed by it, for localhost and for sandbox controllers, valid for a day. */
export function makeCertificates(dir: string, name = 'localhost'): TestCertificates {
  mkdirSync(dir, { recursive: true });
  const at = (file: string) => join(dir, file);
  openssl('req', '-x509', ...CURVE, '-keyout', at('ca.key'), '-out', at('ca.pem'), '-days', '1', '-subj', '/CN=test authority');
  openssl('req', ...CURVE, '-keyout', at('key.pem'), '-out', at('request.pem'), '-subj', `/CN=${name}`);
  writeFileSync(at('names'), 'subjectAltName=DNS:localhost,DNS:etude-sandbox-controller,IP:127.0.0.1\n');
  const by = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '1'];
  openssl('x509', '-req', '-in', at('request.pem'), ...by, '-extfile', at('names'), '-out', at('cert.pem'));
  return { ca: at('ca.pem'), cert: at('cert.pem'), key: at('key.pem') };
}
