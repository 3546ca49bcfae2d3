import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../errors.js';
import { requireQdrant } from './places.js';

it.each(['localhost:6333', 'ftp://localhost', 'nonsense', 'http://'])('calls %s no URL', async (url) => {
  await expect(requireQdrant({ ETUDE_QDRANT_URL: url })).rejects.toMatchObject({ exit: EXIT.usage });
});

it('says that nobody listens there before anything is started', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await expect(requireQdrant({ ETUDE_QDRANT_URL: url })).resolves.toBeUndefined();
  server.close();
  await once(server, 'close');
  await expect(requireQdrant({ ETUDE_QDRANT_URL: url })).rejects.toMatchObject({
    exit: EXIT.unavailable,
    message: expect.stringContaining('ECONNREFUSED'),
  });
});

it.each([
  ['https://qdrant.invalid', 'qdrant.invalid:6333'],
  ['http://qdrant.invalid/prefix', 'qdrant.invalid:6333'],
  ['https://qdrant.invalid:443/', 'qdrant.invalid:443'],
])('looks for %s where services do, at %s', async (url, place) => {
  await expect(requireQdrant({ ETUDE_QDRANT_URL: url })).rejects.toMatchObject({
    message: expect.stringContaining(`Qdrant at ${place} cannot`),
  });
});

it('wants a server or a program where memory shall be in Qdrant', async () => {
  await expect(requireQdrant({ PATH: '/nowhere' })).rejects.toMatchObject({ exit: EXIT.unavailable });
});
