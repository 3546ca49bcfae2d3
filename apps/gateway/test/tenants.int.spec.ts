import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import { decodeStatus } from '@etude/contracts/rich-status';
import { SpendStore } from '@etude/queue/spend/spend-store';
import { type ServiceError, status } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { gatewayForFile, refusal, SPEC } from './gateway.harness.js';

const limits = { '*': { tasks: 2 }, acme: { weight: 4, tasks: 3, tokensPerDay: 100 } };
const rig = gatewayForFile({ ETUDE_TENANT_LIMITS: JSON.stringify(limits), ETUDE_CALLS_PER_TENANT_MAX: '1' });
const spent = { inputTokens: 90, outputTokens: 10, costUsd: 0.5 };

it('refuses tasks beyond the limits and the budget of a tenant, and tells what each tenant uses', async () => {
  const tasks = rig.tasks('globex');
  const first = await tasks.submitTask({ spec: SPEC, requestId: 'first' });
  await tasks.submitTask({ spec: SPEC });
  const refused = await refusal(tasks.submitTask({ spec: SPEC }));
  expect(refused).toMatchObject({ status: status.RESOURCE_EXHAUSTED, code: 'TENANT_LIMIT', retryAfterMs: 5_000 });
  expect((await tasks.submitTask({ spec: SPEC, requestId: 'first' })).name).toBe(first.name);
  await rig.emit('globex', first.name, []);
  for (let i = 0; i < 3; i++) await rig.tasks().submitTask({ spec: SPEC, requestId: `acme-${i}` });
  await new SpendStore(rig.producer, { ETUDE_TENANT_LIMITS: {} }).count({ tenant: 'acme', agent: 'coder', purpose: 'generate' }, spent);
  expect(await refusal(rig.tasks().submitTask({ spec: SPEC }))).toMatchObject({
    status: status.RESOURCE_EXHAUSTED,
    code: 'BUDGET_USED_UP',
  });
  expect(await rig.tasks().getUsage({})).toMatchObject({
    tokensPerDay: 100n,
    rows: [{ agent: 'coder', purpose: 'generate', modelCalls: 1n, inputTokens: 90n, outputTokens: 10n, costUsd: 0.5 }],
  });
  expect((await tasks.getUsage({})).rows).toEqual([]);
  expect(await refusal(rig.tasks().getUsage({ days: 500 }))).toMatchObject({ status: status.INVALID_ARGUMENT });
  await rig.tasks().submitTask({ spec: SPEC, requestId: 'acme-0' });

  const { tenants, nextPageToken } = await rig.client(Queues, 'ops').listTenants({});
  expect([nextPageToken, tenants.map(({ name }) => name)]).toEqual(['', ['acme', 'globex']]);
  expect(tenants[0]).toMatchObject({ waiting: 3, running: 0, tokensToday: 100n, usdToday: 0.5, refusedToday: 1n });
  expect(tenants[0]?.limits).toMatchObject({ weight: 4, tasks: 3, tokensPerDay: 100n });
  expect(tenants[1]).toMatchObject({ waiting: 1, running: 1, tokensToday: 0n, refusedToday: 1n, limits: { weight: 1, tasks: 2 } });
  const page = await rig.client(Queues, 'ops').listTenants({ pageSize: 1 });
  const next = await rig.client(Queues, 'ops').listTenants({ pageSize: 1, pageToken: page.nextPageToken });
  expect([page.tenants[0]?.name, next.tenants[0]?.name, next.nextPageToken]).toEqual(['acme', 'globex', '']);
  expect(await refusal(rig.client(Queues).listTenants({}))).toMatchObject({ status: status.PERMISSION_DENIED });
});

it('refuses calls of a tenant above the limit, and takes calls of other tenants', async () => {
  const many = Array.from({ length: 50 }, () =>
    rig
      .tasks('acme')
      .listTasks({})
      .then(
        () => 'OK',
        ({ metadata }: ServiceError) => decodeStatus(metadata)?.code,
      ),
  );
  await expect(rig.tasks('globex').listTasks({})).resolves.toBeDefined();
  expect(new Set(await Promise.all(many))).toEqual(new Set(['OK', 'TOO_MANY_CALLS']));
  await expect(rig.tasks('acme').listTasks({})).resolves.toBeDefined();
});
