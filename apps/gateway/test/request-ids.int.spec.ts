import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { gatewayForFile, refusal } from './gateway.harness.js';

const rig = gatewayForFile({ ETUDE_SKILLS_ENABLED: 'true' });
const memory = () => rig.client(Memory);
const ann = { agent: 'scout', user: 'ann', requestId: 'r1' };

/** Each stores a record with a text. */
const CALLS = {
  facts: (text: string, owner: object) => memory().storeFact({ ...owner, text }),
  episodes: (text: string, owner: object) => memory().storeEpisode({ ...owner, context: [text], outcomes: [{ b: 1, a: 2 }] }),
  procedures: (text: string, owner: object) => memory().storeProcedure({ ...owner, name: 'open_safe', prompt: text }),
};

const told = (answer: object) => JSON.stringify(answer, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

describe.each(Object.entries(CALLS))('a request id of %s', (_what, store) => {
  const secret = 'The safe opens with 4711.';

  it('gives the same answer to the same request', async () => {
    const first = told(await store(secret, ann));
    expect(first).toContain('4711');
    expect(told(await store(secret, ann)).replace('unchanged', 'added')).toBe(first);
  });

  it.each([
    ['another text', { ...ann }, 'The gate is green.'],
    ['another user', { ...ann, user: 'bob' }, secret],
    ['no user', { ...ann, user: '' }, secret],
    ['another agent', { ...ann, agent: 'other' }, secret],
  ])('is refused with %s, and the error does not contain the stored text', async (_how, owner, text) => {
    const refused = await refusal(store(text, owner));
    expect(refused).toMatchObject({ status: status.ALREADY_EXISTS, code: 'ALREADY_EXISTS' });
    expect(refused.message).not.toContain('4711');
    expect(refused.message).toContain('request_id');
  });
});

it('request ids are separate for each tenant', async () => {
  const theirs = await rig.client(Memory, 'globex').storeFact({ ...ann, text: 'The gate is green.' });
  expect(told(theirs)).not.toContain('4711');
});

it('the size of the store is shown to operators only', async () => {
  const stats = await memory().getMemoryStats({});
  expect(stats).toMatchObject({ adapter: 'sqlite', diskBytes: 0n, memoryBytes: 0n });
  expect(stats.layers.find(({ kind }) => kind === 'fact')?.records).toBeGreaterThan(0n);
  expect((await rig.client(Memory, 'ops').getMemoryStats({})).diskBytes).toBeGreaterThan(0n);
});
