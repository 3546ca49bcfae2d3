import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { type FakeAnswer, FakeChatModel } from '@etude/domain/testing/fake-chat-model';
import { ALL } from '@etude/domain/testing/memory-conformance-start';
import { NEW_YEAR, SCOPE } from '@etude/domain/testing/memory-records';
import { EtudeError } from '@etude/contracts/errors';
import { expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { withinBudget } from '../../test/within-budget.js';
import { memoryOver } from '../open-memory.js';

const MAY = Date.UTC(2026, 4, 3);

/** An answer of the model that notes every turn with the word "lives". */
const noting: FakeAnswer = ({ messages }) => {
  const turns = JSON.parse(/<turns>(.*)<\/turns>/.exec(messages.at(-1)?.content ?? '')?.[1] ?? '[]') as string[];
  const notes = turns.flatMap((line, turn) =>
    line.includes('lives') ? [{ turn, text: line.replace(/^[^:]*: /, ''), about: 'home of Ann' }] : [],
  );
  return JSON.stringify({ notes: [...notes, { turn: 999, text: 'of no turn' }] });
};

/** A memory whose turns a model reads. */
function world(answer: FakeAnswer = noting, { calls = 9, isOn = true } = {}) {
  const model = new FakeChatModel(Array<FakeAnswer>(calls).fill(answer));
  const woken: string[] = [];
  let at = MAY;
  const memory = memoryOver(modelStore(), {
    embedder: new LexicalEmbedder(),
    clock: { now: () => NEW_YEAR },
    onUnsettled: async (tenant) => void woken.push(tenant),
  });
  const say = (texts: readonly string[], scope = SCOPE) => {
    const messages = texts.map((text) => ({ role: 'user', name: 'Ben', text, at: (at += 1) }));
    return memory.conversations.add({ scope, name: 'chat', title: '', messages, writeId: texts.join(), first: null, at: NEW_YEAR });
  };
  const settling = withinBudget(model, { calls, isOn });
  const read = () => memory.conversations.read('acme', settling);
  const facts = async () => (await memory.semantic.list(ALL, 9)).toSorted((a, b) => (a.text < b.text ? -1 : 1));
  return { memory, say, read, facts, woken, requests: model.requests };
}

it('notes facts behind the answer, with their time, owner and origin, and reads each turn once', async () => {
  const { memory, say, read, facts, requests, woken } = world();
  const ann = { ...SCOPE, user: 'ann' };
  const { conversation } = await say(['Hello!', 'Ann lives in Graz.'], ann);
  expect([woken, requests, await memory.conversations.unread('acme')]).toEqual([['acme'], [], 1]);
  expect(await read()).toEqual({ modelCalls: 1, facts: 1, left: 0 });
  expect(await facts()).toMatchObject([{ text: 'Ann lives in Graz.', scope: ann, source: 'conversation', validFrom: MAY + 2 }]);
  const [hit] = await memory.semantic.search(ALL, { text: 'Graz', limit: 1, kinds: ['fact'] });
  expect(hit?.sources).toContain(`conversations/${conversation.id}`);
  expect([await read(), await memory.conversations.unread('acme')]).toEqual([{ modelCalls: 0, facts: 0, left: 0 }, 0]);
  await say(['Ann lives in Linz now.'], ann);
  expect(await read()).toMatchObject({ modelCalls: 1, facts: 1 });
  expect(requests[1]?.messages.at(-1)?.content).toContain('<before>"Ben: Hello!\\nBen: Ann lives in Graz."</before>');
  expect((await facts()).map(({ text }) => text)).toEqual(['Ann lives in Linz now.']);
});

it('reads as many turns as the budget allows, and the others later', async () => {
  const texts = Array.from({ length: 100 }, (_, n) => `Number ${n} lives here.`);
  const { say, read, memory } = world(undefined, { calls: 2 });
  await say(texts);
  expect(await read()).toMatchObject({ modelCalls: 2, left: 20 });
  expect(await memory.conversations.unread('acme')).toBe(1);
});

it('leaves turns unread if the model fails or the agent is switched off', async () => {
  const failing = world(new EtudeError('MODEL_UNAVAILABLE', 'away'));
  await failing.say(['Ann lives in Graz.']);
  await expect(failing.read()).rejects.toMatchObject({ code: 'MODEL_UNAVAILABLE' });
  expect(await failing.memory.conversations.unread('acme')).toBe(1);
  const off = world(undefined, { isOn: false });
  await off.say(['Ann lives in Graz.']);
  expect([await off.read(), off.requests]).toEqual([{ modelCalls: 0, facts: 0, left: 0 }, []]);
});

it('goes on after an answer that cannot be read', async () => {
  const { say, read, facts, memory } = world('I noted nothing.');
  await say(['Ann lives in Graz.']);
  expect(await read()).toEqual({ modelCalls: 1, facts: 0, left: 0 });
  expect([await facts(), await memory.conversations.unread('acme')]).toEqual([[], 0]);
});
