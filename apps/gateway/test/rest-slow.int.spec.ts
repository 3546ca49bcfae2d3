import { createConnection } from 'node:net';
import { freePort } from '@etude/test-support/ports';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EtudeError } from '@etude/contracts/errors';
import { RestServer } from '../src/rest/rest-server.js';

/** Who calls is known here; no call gets as far as gRPC. */
const known = {
  identify: ([authorization]: readonly (string | Buffer)[]) => {
    if (authorization !== 'Bearer good') throw new EtudeError('UNAUTHENTICATED', 'not known');
    return { tenant: 'acme', roles: ['user' as const], name: 'acme' };
  },
};
const server = new RestServer('127.0.0.1:1', known, { provider: 'Etude.Skill', bodies: { readingMax: 2, idleMs: 2_000 } });
let port = 0;
beforeAll(async () => server.listen('127.0.0.1', (port = await freePort())));
afterAll(() => server.onModuleDestroy());

/** Sends the start of a body and no more; answers what comes back until then. */
function begin(key: string, length: number): Promise<string> {
  const head = ['POST /v1/memory/facts HTTP/1.1', 'host: x', `authorization: Bearer ${key}`, `content-length: ${length}`];
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1', () => socket.write(`${head.join('\r\n')}\r\n\r\n{`));
    socket.once('data', (data) => {
      socket.destroy();
      resolve(String(data));
    });
    socket.once('error', reject);
  });
}

it('answers before the body came where the key is not known, or the body too large', async () => {
  expect(await begin('bad', 500_000)).toMatch(/^HTTP\/1\.1 401 /);
  expect(await begin('good', 14_000_000)).toMatch(/^HTTP\/1\.1 413 /);
});

it('reads so many large bodies at once, and gives up on those that stand still', async () => {
  const answers = await Promise.all(Array.from({ length: 4 }, () => begin('good', 500_000)));
  const busy = answers.filter((answer) => answer.startsWith('HTTP/1.1 503 '));
  expect(busy).toHaveLength(2);
  expect(busy.every((answer) => /^retry-after: 1\r$/m.test(answer))).toBe(true);
  expect(answers.filter((answer) => answer.startsWith('HTTP/1.1 408 '))).toHaveLength(2);
});
