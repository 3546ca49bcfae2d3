import type { ChatModel } from '@etude/domain/ports/model';
import { expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import type { TenantLimits } from '../limits/tenant-limits.js';
import { metered, SpendStore } from './spend-store.js';

const startQueue = queueForFile();
const never = new AbortController().signal;
const NOON = Date.UTC(2026, 10, 28, 12);
const DAY_MS = 86_400_000;
const MODEL: ChatModel = {
  chat: async () => ({ text: 'ok', finishReason: 'stop', model: 'm', scripted: true, inputTokens: 60, outputTokens: 40, costUsd: 0.000_5 }),
};

function start(budget: Partial<TenantLimits> = {}) {
  const time = { at: NOON };
  const { producer } = startQueue();
  const store = new SpendStore(producer, { ETUDE_TENANT_LIMITS: { '*': budget } }, () => time.at);
  const model = metered(MODEL, store);
  const ask = (tenant: string, agent: string, purpose: string) => model.chat({ messages: [], account: { tenant, agent, purpose } }, never);
  return { store, time, ask, model };
}

it('counts each call by day, agent and purpose, for its tenant only', async () => {
  const { store, time, ask, model } = start();
  await Promise.all([ask('acme', 'a', 'generate'), ask('acme', 'a', 'generate'), ask('acme', 'b', 'settle'), ask('beta', 'a', 'generate')]);
  await model.chat({ messages: [] }, never);
  time.at += DAY_MS;
  await ask('acme', 'a', 'generate');
  const one = { modelCalls: 1, inputTokens: 60, outputTokens: 40, costUsd: 0.000_5 };
  expect(await store.list('acme', 7)).toEqual([
    { day: '2026-11-29', agent: 'a', purpose: 'generate', ...one },
    { day: '2026-11-28', agent: 'a', purpose: 'generate', modelCalls: 2, inputTokens: 120, outputTokens: 80, costUsd: 0.001 },
    { day: '2026-11-28', agent: 'b', purpose: 'settle', ...one },
  ]);
  expect(await store.list('acme', 1)).toHaveLength(1);
  expect(await store.list('acme', 7, 'b')).toHaveLength(1);
  expect(await store.list('other', 7)).toEqual([]);
});

it.each([
  ['tokens', { tokensPerDay: 200 }],
  ['money', { usdPerDay: 0.001 }],
])('refuses calls once the %s of the day are used up, until the next day', async (_what, budget) => {
  const { store, time, ask } = start(budget);
  await ask('acme', 'a', 'generate');
  await ask('acme', 'b', 'generate');
  await expect(ask('acme', 'a', 'generate')).rejects.toMatchObject({ code: 'BUDGET_USED_UP', details: { retryAfterMs: DAY_MS / 2 } });
  await expect(ask('beta', 'a', 'generate')).resolves.toBeDefined();
  expect((await store.list('acme', 1)).map(({ modelCalls }) => modelCalls)).toEqual([1, 1]);
  time.at += DAY_MS / 2;
  await expect(ask('acme', 'a', 'generate')).resolves.toBeDefined();
});
