import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { status } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { gatewayForFile, type KeyName, pagesOf, refusal } from './gateway.harness.js';

const rig = gatewayForFile();

const memory = (key: KeyName = 'acme') => rig.client(Memory, key);
const MAY = timestampFromMs(Date.UTC(2026, 4, 3, 9));
const said = (name: string, text: string) => ({ role: 'user', name, text, time: MAY });
const TALK = [said('Ben', 'Where did you leave the dinghy?'), said('Ann', 'Behind the kelp shed.'), said('Ben', 'I will fetch it.')];
const add = (messages: readonly object[], more: object = {}, key: KeyName = 'acme') =>
  memory(key).addConversation({ agent: 'scout', messages: [...messages], ...more });

it('is found turn by turn at once, with speaker, date, neighbours and origin', async () => {
  const { conversation, outcome } = await add(TALK, { name: 'harbour', title: 'The dinghy' });
  expect({ outcome, turns: conversation?.turns }).toEqual({ outcome: 'added', turns: 3 });
  const { hits } = await memory().searchMemory({ query: 'kelp shed', kinds: ['turn'], limit: 1 });
  expect(hits[0]).toMatchObject({ kind: 'turn', title: 'Ann, 3 May 2026', text: 'Behind the kelp shed.' });
  expect(hits[0]?.turn).toMatchObject({ conversation: conversation?.id, index: 1, name: 'Ann', role: 'user', time: MAY });
  expect([hits[0]?.before, hits[0]?.after].map((near) => near?.map(({ name, text }) => [name, text]))).toEqual([
    [['Ben', 'Where did you leave the dinghy?']],
    [['Ben', 'I will fetch it.']],
  ]);
  const told = [`conversations/${conversation?.id}`];
  expect(hits[0]).toMatchObject({ origins: told, untrustedOrigins: told });
  const asked = { context: 'where is the dinghy: behind which shed?', agent: 'scout' };
  const { facts, tokens } = await memory().recall(asked);
  expect((await memory().recall({ ...asked, tokensMax: tokens - 1 })).tokens).toBeLessThan(tokens);
  const recalled = facts.find(({ kind }) => kind === 'turn');
  expect(recalled).toMatchObject({ turn: { conversation: conversation?.id }, origins: told, untrustedOrigins: told });
  const pages = await pagesOf((pageToken) => memory().listTurns({ id: conversation?.id ?? '', pageSize: 2, pageToken }));
  expect(pages.map(({ turns }) => turns.length)).toEqual([2, 1]);
  const record = await memory().getMemory({ id: hits[0]?.id ?? '', layer: 'semantic' });
  expect(record.fields).toMatchObject({ text: 'Behind the kelp shed.', at: '2026-05-03T09:00:00.000Z' });
});

it('belongs to its tenant and user', async () => {
  const { conversation } = await add(TALK, { user: 'ann' });
  const id = conversation?.id ?? '';
  for (const denied of [
    add([said('Ann', 'more')], { id, user: 'bob' }),
    add([said('Ann', 'more')], { id }, 'globex'),
    memory('globex').listTurns({ id }),
    memory('globex').deleteConversation({ id }),
  ])
    expect((await refusal(denied)).status).toBe(status.NOT_FOUND);
  const named = async (user: string) => (await memory().listConversations({ user })).conversations.map((one) => one.id);
  expect(await named('bob')).not.toContain(id);
  expect(await named('ann')).toContain(id);
  await memory().deleteConversation({ id });
  expect(await named('ann')).not.toContain(id);
  expect((await memory().searchMemory({ query: 'kelp shed', user: 'ann' })).hits.map(({ user }) => user)).not.toContain('ann');
});

it.each([
  ['no messages', {}, 'messages'],
  ['an empty text', { messages: [said('Ann', ' ')] }, 'messages[0].text'],
  ['a long text', { messages: [said('Ann', 'x'.repeat(100_001))] }, 'messages[0].text'],
  ['no role', { messages: [{ text: 'hello' }] }, 'messages[0].role'],
  ['a future time', { messages: [{ ...said('Ann', 'hello'), time: timestampFromMs(Date.now() + 2 * 86_400_000) }] }, 'messages[0].time'],
  ['many messages', { messages: Array.from({ length: 1_001 }, () => said('Ann', 'hello')) }, 'messages'],
  ['no agent', { agent: '', messages: TALK }, 'agent'],
  ['id and name', { id: 'c1', name: 'harbour', messages: TALK }, 'name'],
])('is refused with %s, naming the field', async (_what, request, field) => {
  expect(await refusal(add([], request))).toMatchObject({ status: status.INVALID_ARGUMENT, fields: [field] });
});

it('is refused whole if a message holds a secret, naming the message and never the secret', async () => {
  const secret = 'AKIAQWERTYUIOP234567';
  const refused = await refusal(add([...TALK, said('Ann', `use ${secret}`)], { name: 'leak' }));
  expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['messages[3].text'] });
  expect(JSON.stringify(refused)).not.toContain(secret);
  expect((await memory().listConversations({})).conversations.map(({ name }) => name)).not.toContain('leak');
});
