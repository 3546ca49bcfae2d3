import { createConnection } from 'node:net';
import { EtudeError } from '@etude/contracts/errors';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { freePort } from '@etude/test-support/ports';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Calls } from '../src/calls/calls.js';
import { RestServer } from '../src/doors/rest-server.js';

/** Who calls is known here; no call gets as far as a handler. */
const known = {
  identify: ([authorization]: readonly (string | Buffer)[]) => {
    if (authorization !== 'Bearer good') throw new EtudeError('UNAUTHENTICATED', 'not known');
    return { tenant: 'acme', roles: ['user' as const], name: 'acme' };
  },
};
const gateway = new Calls({ authenticator: known, shutdown: new AbortController().signal, perTenantMax: 1, log: console });
for (const service of [Memory, Skills, Agents, Tools])
  gateway.serve(service, Object.fromEntries(service.methods.map(({ localName }) => [localName, () => expect.unreachable()])), {});
const server = new RestServer({ calls: gateway, authenticator: known, provider: 'Etude.Skill', bodies: { readingMax: 2, idleMs: 2_000 } });
let port = 0;
beforeAll(async () => server.listen('127.0.0.1', (port = await freePort())));
afterAll(() => server.close());

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
