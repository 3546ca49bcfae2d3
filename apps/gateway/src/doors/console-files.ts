import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { EtudeError } from '@etude/contracts/errors';

const ROOT = '/console';
/** The built console. The path is the same from the sources and the compiled files of this service. */
const FOLDER = fileURLToPath(new URL('../../../console/dist/', import.meta.url));
const INDEX = 'index.html';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Only the console's own files run, and they call only this server. Pictures of sandboxes are blobs of the page. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

export const isOfConsole = (path: string) => path === ROOT || path.startsWith(`${ROOT}/`);

/** Names of files. No such name leads out of the folder. */
const NAME = /^(?:assets\/)?[\w-]+(?:\.[\w-]+)+$/;

/** Packed assets by name. A name contains the asset's digest, so its content never changes. */
const packedAssets = new Map<string, Buffer>();

function packed(name: string): Buffer {
  const known = packedAssets.get(name) ?? gzipSync(readFileSync(join(FOLDER, name)), { level: 9 });
  packedAssets.set(name, known);
  return known;
}

/** Sends a file of the built console, or its page for any other address. @throws EtudeError NOT_FOUND, also if no console is built */
export function sendConsole(path: string, { headers }: IncomingMessage, response: ServerResponse): void {
  const asked = path.slice(ROOT.length + 1);
  // Addresses of the page may have dots too, such as /console/operations/rollout.run.
  const isPage = !asked.startsWith('assets/') && !(NAME.test(asked) && existsSync(join(FOLDER, asked)));
  const name = isPage ? INDEX : asked;
  if (!NAME.test(name) || !existsSync(join(FOLDER, name))) {
    const message = name === INDEX ? 'This gateway has no console. Build it: node apps/console/build.mjs' : `There is no ${path}.`;
    throw new EtudeError('NOT_FOUND', message);
  }
  const isAsset = name.startsWith('assets/');
  const isPacked = isAsset && /\bgzip\b/.test(String(headers['accept-encoding']));
  response.writeHead(200, {
    ...HEADERS,
    'content-type': TYPES[extname(name)] ?? 'application/octet-stream',
    'cache-control': isAsset ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'accept-encoding',
    ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
  });
  response.end(isPacked ? packed(name) : readFileSync(join(FOLDER, name)));
}
