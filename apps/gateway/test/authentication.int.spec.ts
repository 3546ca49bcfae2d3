import { createServiceClient } from '@etude/contracts/grpc-client';
import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import { QUEUES } from '@etude/contracts/queues';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Client, credentials, Metadata, status } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { GatewayRig, KEYS, refusal, SPEC, writeKeys } from './gateway.harness.js';

const rig = new GatewayRig();
beforeAll(() => rig.start());
afterAll(() => rig.stop());

function withHeader(authorization: string): Promise<unknown> {
  const client = new Client(rig.address, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set('authorization', authorization);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      '/etude.v1.Tasks/ListTasks',
      () => Buffer.alloc(0),
      (bytes: Buffer) => bytes,
      {},
      metadata,
      (error, value) => {
        client.close();
        if (error) reject(error);
        else resolve(value);
      },
    );
  });
}

describe('with a key file', () => {
  afterEach(() => writeKeys(rig.keysPath));

  it('refuses a call without a key', async () => {
    expect(await refusal(rig.tasks(null).listTasks({}))).toMatchObject({ status: status.UNAUTHENTICATED, code: 'UNAUTHENTICATED' });
  });

  it.each([['Bearer wrong'], ['Basic a2V5'], [KEYS.acme], ['Bearer'], [`Bearer ${KEYS.acme} x`]])(
    'refuses the header %j',
    async (header) => {
      expect((await refusal(withHeader(header))).status).toBe(status.UNAUTHENTICATED);
    },
  );

  it('refuses a revoked key', async () => {
    writeKeys(rig.keysPath, ['acme']);
    expect((await refusal(rig.tasks('globex').listTasks({}))).status).toBe(status.UNAUTHENTICATED);
    await expect(rig.tasks('acme').listTasks({})).resolves.toBeDefined();
  });

  it('shows queues to operators only', async () => {
    expect(await refusal(rig.client(Queues, 'acme').listQueues({}))).toMatchObject({
      status: status.PERMISSION_DENIED,
      code: 'PERMISSION_DENIED',
    });
    const { queues } = await rig.client(Queues, 'ops').listQueues({});
    expect(queues.map(({ name }) => name)).toEqual(QUEUES.map(({ name }) => name));
  });
});

describe('with an anonymous tenant', () => {
  const anonymous = new GatewayRig();
  beforeAll(() => anonymous.start({ ETUDE_AUTH_ANONYMOUS_TENANT: 'local' }));
  afterAll(() => anonymous.stop());

  it('accepts calls without a key as that tenant, with every role', async () => {
    const { name } = await anonymous.tasks(null).submitTask({ spec: SPEC });
    expect((await anonymous.tasks(null).listTasks({})).tasks.map((task) => task.name)).toContain(name);
    await expect(anonymous.client(Queues, null).listQueues({})).resolves.toBeDefined();
  });

  it('refuses a wrong key', async () => {
    const client = createServiceClient(Tasks, anonymous.address, { apiKey: 'wrong' });
    expect((await refusal(client.listTasks({}))).status).toBe(status.UNAUTHENTICATED);
    client.close();
  });
});
