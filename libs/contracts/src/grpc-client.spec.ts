import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { expect, it, vi } from 'vitest';
import { Tasks } from './gen/etude/v1/tasks_pb.js';
import { createServiceClient } from './grpc-client.js';

it('gives up a connection that nobody answers, and connects anew for the next call', { timeout: 30_000 }, async () => {
  const open: Socket[] = [];
  const silent = createServer((socket) => open.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const address = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const tasks = createServiceClient(Tasks, address, { connectMaxMs: 100 });
  await expect(tasks.listTasks({})).rejects.toMatchObject({ code: status.UNAVAILABLE });
  silent.close();
  for (const socket of open) socket.destroy();
  const server = new Server();
  await promisify(server.bindAsync.bind(server))(address, ServerCredentials.createInsecure());
  // On a busy machine a good connection can also take longer than `connectMaxMs`.
  const answered = async () => expect(tasks.listTasks({})).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
  await vi.waitFor(answered, { timeout: 20_000 });
  tasks.close();
  server.forceShutdown();
});
