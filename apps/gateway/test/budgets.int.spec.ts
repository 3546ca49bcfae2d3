import { budgetConfig, SpendStore } from '@etude/queue/spend/spend-store';
import { status } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { gatewayForFile, refusal, SPEC } from './gateway.harness.js';

const rig = gatewayForFile({ ETUDE_TENANT_TOKENS_PER_DAY: '100' });

it('takes no task of a tenant whose budget is used up, and tells what it was used for', async () => {
  await rig.tasks().submitTask({ spec: SPEC });
  const spend = new SpendStore(rig.producer, budgetConfig.parse({}));
  await spend.count({ tenant: 'acme', agent: 'coder', purpose: 'generate' }, { inputTokens: 90, outputTokens: 10, costUsd: 0.5 });
  const refused = await refusal(rig.tasks().submitTask({ spec: SPEC }));
  expect(refused).toMatchObject({ status: status.RESOURCE_EXHAUSTED, code: 'BUDGET_USED_UP' });
  expect(await rig.tasks().getUsage({})).toMatchObject({
    tokensPerDay: 100n,
    rows: [{ agent: 'coder', purpose: 'generate', modelCalls: 1n, inputTokens: 90n, outputTokens: 10n, costUsd: 0.5 }],
  });
  expect((await rig.tasks('globex').getUsage({})).rows).toEqual([]);
  await rig.tasks('globex').submitTask({ spec: SPEC });
  expect(await refusal(rig.tasks().getUsage({ days: 500 }))).toMatchObject({ status: status.INVALID_ARGUMENT });
});
