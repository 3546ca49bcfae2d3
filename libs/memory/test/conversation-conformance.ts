import type { Message, Turn } from '@etude/contracts/conversation';
import * as fc from 'fast-check';
import { describe, expect } from 'vitest';
import type { Addition } from '../src/layers/conversations.js';
import type { Memory } from '../src/memory.js';
import { ALL, type MakeMemory, start, withMemory } from '@etude/domain/testing/memory-conformance-start';
import { NEW_YEAR, SCOPE } from '@etude/domain/testing/memory-records';

const MAY = Date.UTC(2026, 4, 3, 9);

const said = (text: string, name = 'Ann', at: number | null = MAY): Message => ({ role: 'user', name, text, at });
let writes = 0;

const additionOf = (messages: readonly Message[], changes: Partial<Addition> = {}): Addition => ({
  scope: SCOPE,
  name: 'chat 1',
  title: '',
  messages,
  writeId: `w${(writes += 1)}`,
  first: null,
  at: NEW_YEAR,
  ...changes,
});

/** All messages of the tenant's only conversation, read in pages. */
async function messagesIn(memory: Memory): Promise<readonly Message[]> {
  const [conversation] = await memory.conversations.list(ALL, { limit: 9 });
  const [id, count] = [conversation?.id ?? '', conversation?.turns ?? 0];
  const turns: Turn[] = [];
  for (let page = await memory.conversations.turns(ALL, id, { limit: 7 }); page.length > 0;) {
    turns.push(...page);
    page = await memory.conversations.turns(ALL, id, { limit: 7, afterKey: page.at(-1)!.id });
  }
  expect(turns.map(({ index }) => index)).toEqual(Array.from({ length: count }, (_, n) => n));
  return turns.map(({ role, name, text, at }) => ({ role, name, text, at }));
}

/** The promises of every memory about conversations and their turns. */
export function conversationConformance(make: MakeMemory<Memory>): void {
  const it = withMemory(make);
  describe('with conversations', () => {
    it('finds a turn at once, with its speaker, its time and the turns around it', async ({ memory }) => {
      const told = [said('Where is the boat?', 'Ben'), said('At the shed.'), said('Thanks!', 'Ben', null), said('Mind the wasps.')];
      const { conversation, first, outcome } = await memory.conversations.add(additionOf(told, { title: 'Boats' }));
      expect({ first, outcome, conversation }).toMatchObject({ first: 0, outcome: 'added', conversation: { turns: 4, title: 'Boats' } });
      const [hit] = await memory.semantic.search(ALL, { text: 'shed', limit: 1 });
      expect(hit).toMatchObject({ kind: 'turn', title: 'Ann, 3 May 2026', text: 'At the shed.' });
      expect(hit?.turn).toMatchObject({ conversation: conversation.id, index: 1, role: 'user', name: 'Ann', at: MAY });
      expect(hit?.before?.map(({ text }) => text)).toEqual(['Where is the boat?']);
      expect(hit?.after?.map(({ text, at }) => [text, at])).toEqual([
        ['Thanks!', null],
        ['Mind the wasps.', MAY],
      ]);
    });

    it('finds an answer by the words of the question before it, and any turn by its speaker', async ({ memory }) => {
      await memory.conversations.add(additionOf([said('Which harbour is closest?', 'Ben'), said('Kegimi.')]));
      const found = async (text: string) =>
        (await memory.semantic.search(ALL, { text, limit: 5, kinds: ['turn'] })).map((hit) => hit.text).toSorted();
      expect(await found('closest harbour')).toEqual(['Kegimi.', 'Which harbour is closest?']);
      expect(await found('Ben')).toContain('Which harbour is closest?');
    });

    it('lowers the turns of others where a question names one speaker', async ({ memory }) => {
      await memory.conversations.add(additionOf([said('Do you sail on Mondays?', 'Ben'), said('I sail on Mondays.', 'Ann')]));
      const lowered = async (text: string) => {
        const hits = await memory.semantic.search(ALL, { text, limit: 5, kinds: ['turn'], explain: true });
        const others = hits.filter(({ explanation }) => explanation?.['speaker'] !== undefined);
        expect(others.every(({ why = [] }) => why[0]?.endsWith('× 0.87 for another speaker'))).toBe(true);
        return others.map(({ turn }) => turn?.name);
      };
      expect(await lowered('Does Ann sail on Mondays?')).toEqual(['Ben']);
      expect(await lowered('Do Ann and Ben sail on Mondays?')).toEqual([]);
      expect(await lowered('Who sails on Mondays?')).toEqual([]);
    });

    it('appends to the conversation of that name, and keeps equal messages apart', async ({ memory }) => {
      const [ok, long] = [said('ok'), said(` ${'whole text, kept byte for byte. '.repeat(300)}\n`)];
      await memory.conversations.add(additionOf([ok, ok]));
      expect(await memory.conversations.add(additionOf([long, ok]))).toMatchObject({
        first: 2,
        outcome: 'appended',
        conversation: { turns: 4 },
      });
      expect(await messagesIn(memory)).toEqual([ok, ok, long, ok]);
    });

    it('adds the messages of one request once', async ({ memory }) => {
      const request = additionOf([said('one'), said('two')]);
      await memory.conversations.add(request);
      await memory.conversations.add(additionOf([said('three')]));
      expect(await memory.conversations.add(request)).toMatchObject({ first: 0, outcome: 'unchanged' });
      expect(await messagesIn(memory)).toEqual([said('one'), said('two'), said('three')]);
    });

    it('skips messages that are in their place already, and refuses other ones there', async ({ memory }) => {
      const [one, two, three] = [said('one'), said('two'), said('three')];
      await memory.conversations.add(additionOf([one, two], { first: 0 }));
      expect(await memory.conversations.add(additionOf([one, two], { first: 0 }))).toMatchObject({ outcome: 'unchanged' });
      expect(await memory.conversations.add(additionOf([two, three], { first: 1 }))).toMatchObject({ outcome: 'appended' });
      for (const [messages, first, code] of [
        [[one, three], 0, 'ALREADY_EXISTS'],
        [[{ ...one, at: null }], 0, 'ALREADY_EXISTS'],
        [[three], 4, 'FAILED_PRECONDITION'],
      ] as const)
        await expect(memory.conversations.add(additionOf(messages, { first }))).rejects.toMatchObject({ code });
      expect(await messagesIn(memory)).toEqual([one, two, three]);
    });

    it('completes an addition that was aborted, also if others added meanwhile', async ({ memory }) => {
      const stop = new AbortController();
      const request = additionOf(Array.from({ length: 100 }, (_, n) => said(`number ${n}`)));
      const cut = memory.conversations.add(request, stop.signal);
      stop.abort();
      await expect(cut).rejects.toMatchObject({ name: 'AbortError' });
      await memory.conversations.add(additionOf([said('later')]));
      await memory.conversations.add(request);
      const all = await messagesIn(memory);
      expect(all.toSorted(byText)).toEqual([...request.messages, said('later')].toSorted(byText));
    });

    it('neither merges nor loses a turn, however requests overlap', async () => {
      const text = fc.constantFrom('ok', 'Ok', 'ok.', 'see you', 'See you!');
      const requests = fc.array(fc.array(text, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 });
      await fc.assert(
        fc.asyncProperty(requests, async (texts) => {
          const memory = await start(make);
          const all = texts.map((of) => additionOf(of.map((one) => said(one))));
          await Promise.all([...all, ...all].map((request) => memory.conversations.add(request)));
          const stored = await messagesIn(memory);
          expect(stored.map((one) => one.text).toSorted()).toEqual(texts.flat().toSorted());
          const hits = await memory.semantic.search(ALL, { text: 'ok, see you', limit: 100, kinds: ['turn'] });
          expect(hits).toHaveLength(texts.flat().length);
          await memory.store.remove({ tenant: 'acme' }, 'semantic', {});
        }),
        { numRuns: 4 },
      );
    });
  });
}

const byText = (a: Message, b: Message) => (a.text < b.text ? -1 : 1);
