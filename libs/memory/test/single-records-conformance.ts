import type { NamedRecord } from '@etude/contracts/memory-upkeep';
import type { Clock } from '@etude/domain/ports/clock';
import { type FakeAnswer, FakeChatModel } from '@etude/domain/testing/fake-chat-model';
import { ALL, withMemory } from '@etude/domain/testing/memory-conformance-start';
import { chunksOf, documentOf, episodeOf, factOf, NEW_YEAR, SCOPE, skillOf, transitionOf } from '@etude/domain/testing/memory-records';
import { storeAt } from '@etude/domain/testing/skill-lives';
import { procedureSource } from '@etude/domain/skills/life/told-procedure';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { describe, expect } from 'vitest';
import type { Memory, PlainRecord } from '../src/memory.js';
import { eraseOwned } from '../src/upkeep/erase-owned.js';
import type { MemoryUnderTest } from './layers-isolation.js';
import { exportOf, linesOf } from './upkeep-samples.js';
import { withinBudget } from './within-budget.js';

const ROLLOUT = 'tabcdefgh-r1';
const EPISODE = `${ROLLOUT}.episode`;
const BOBS = { ...SCOPE, user: 'bob' };

const named = (name: string, { agent, user } = SCOPE): NamedRecord => ({ name, agent, user });
const namesIn = (records: readonly NamedRecord[]) => records.map(({ name }) => name).toSorted();

/** Deletes as the gateway and the worker do. Returns the number of removed parts, and the names of the records that rested on it. */
async function remove({ upkeep, store }: Memory, record: NamedRecord) {
  const { found, supported, newFrom: before } = await upkeep.planDeletion('acme', record);
  await upkeep.removeRecord('acme', record, before);
  expect(await upkeep.findErased({ tenant: 'acme', record }, before)).toEqual({});
  // Erases without `purge`, which takes seconds.
  const deps = { store, embedder: new LexicalEmbedder(), clock: { now: () => before } };
  const copies = await eraseOwned(deps, { tenant: 'acme', record }, { before });
  return { found, supported: namesIn(supported), copies };
}

/** A judge that answers "same" for every pair of facts. */
const judge: FakeAnswer = ({ messages }) => {
  const pairs = (/<pairs>(.*)<\/pairs>/s.exec(messages.at(-1)?.content ?? '')?.[1] ?? '').split('],[');
  return JSON.stringify({ pairs: pairs.map(() => ({ verdict: 'same', reason: 'both say that Ann drinks tea' })) });
};

/** All pages of a list. */
async function pagesOf(memory: Memory, query: Parameters<Memory['list']>[1], scope: Parameters<Memory['list']>[0] = ALL) {
  const pages: Array<readonly PlainRecord[]> = [];
  for (let next: Awaited<ReturnType<Memory['list']>>['next'] | undefined; next !== null;) {
    const page = await memory.list(scope, { ...query, ...(next === undefined ? {} : { after: next }) });
    pages.push(page.records);
    ({ next } = page);
  }
  return pages;
}

/** Listing records, and deleting one, over every adapter. `open` is called once per test. */
export function singleRecordsConformance(open: (options: { readonly clock: Clock }) => Promise<MemoryUnderTest>): void {
  let now = NEW_YEAR;
  const it = withMemory(() => {
    now = NEW_YEAR + 1_000;
    return open({ clock: { now: () => (now += 1) } });
  });
  const tell = async ({ semantic }: Memory, text: string, part: Parameters<typeof factOf>[0] = {}) =>
    (await semantic.store(`w ${text} ${now}`, factOf({ text, episodes: [], source: 'told', createdAt: (now += 1), ...part }))).fact;

  describe('deleting one record', () => {
    it('removes a fact, and keeps the history of its other versions whole', async ({ memory }) => {
      const subject = 'editor of Ann';
      const [vim, ed, vi] = [
        await tell(memory, 'Ann uses Vim.', { subject }),
        await tell(memory, 'Ann uses ed.', { subject }),
        await tell(memory, 'Ann uses vi.', { subject }),
      ];
      const other = await tell(memory, 'Whales sing at night.');
      await memory.episodic.storeEpisode(episodeOf({ id: EPISODE, touched: [`facts/${ed.id}`] }));
      const { found, supported, copies } = await remove(memory, named(`facts/${ed.id}`));
      expect([found, copies]).toEqual([{ 'memory.semantic.fact': 1 }, {}]);
      expect(supported).toEqual([`episodes/${ROLLOUT}`, `facts/${vim.id}`, `facts/${vi.id}`].toSorted());
      expect(await memory.get(ALL, 'semantic', ed.id)).toBeNull();
      expect((await memory.semantic.history(ALL, vi.id)).map(({ id }) => id)).toEqual([vi.id, vim.id]);
      expect(await memory.semantic.get(ALL, vim.id)).toMatchObject({ supersededBy: vi.id, validTo: expect.any(Number) });
      await remove(memory, named(`facts/${vi.id}`));
      expect(await memory.semantic.get(ALL, vim.id)).toMatchObject({ validTo: expect.any(Number) });
      expect(await memory.semantic.get(ALL, vim.id)).not.toHaveProperty('supersededBy');
      expect((await memory.semantic.list(ALL, 9)).map(({ id }) => id)).toEqual([other.id]);
    });

    it('stores a deleted fact again, also where a later life of it is left', async ({ memory }) => {
      const subject = 'editor of Ann';
      const first = await tell(memory, 'Ann uses Vim.', { subject });
      await tell(memory, 'Ann uses ed.', { subject });
      const again = await tell(memory, 'Ann uses Vim.', { subject });
      expect(again.id).not.toBe(first.id);
      await remove(memory, named(`facts/${first.id}`));
      await tell(memory, 'Ann uses ed.', { subject });
      const third = await tell(memory, 'Ann uses Vim.', { subject });
      await remove(memory, named(`facts/${third.id}`));
      expect(await memory.semantic.get(ALL, again.id)).not.toBeNull();
    });

    it('removes an episode with its attempts, summary and reflection', async ({ memory }) => {
      const { episodic, semantic } = memory;
      await episodic.storeTransition(transitionOf({ prompt: 'count the zebras' }));
      await episodic.storeEpisode(episodeOf({ id: EPISODE, summary: 'counted zebras', reflection: 'mind the zebras' }));
      await episodic.storeEpisode(episodeOf({ id: 'x1', taskId: 'x1', rolloutId: 'x1', summary: 'kept zebras' }));
      const fact = await tell(memory, 'Zebras are striped.', { episodes: [EPISODE], source: 'consolidation' });
      await storeAt(memory.procedural, skillOf({ status: 'active' }));
      const { found, supported } = await remove(memory, named(`episodes/${ROLLOUT}`));
      expect(found).toEqual({
        'memory.episodic.transition': 1,
        'memory.episodic.episode': 1,
        'memory.semantic.summary': 1,
        'memory.semantic.reflection': 1,
      });
      expect(supported).toEqual([`facts/${fact.id}`, 'skills/sum_even@1']);
      const hits = await Promise.all([episodic, semantic].map((layer) => layer.search(ALL, { text: 'zebras', limit: 9 })));
      expect(
        hits
          .flat()
          .map(({ kind, id }) => `${kind} ${id}`)
          .toSorted(),
      ).toEqual(['episode x1', `fact ${fact.id}`, 'summary x1']);
    });

    it('removes a document with its chunks', async ({ memory }) => {
      const { semantic } = memory;
      for (const id of ['d1', 'd2']) {
        const document = documentOf([`Boil ${id}.`], { id, name: id });
        await semantic.storeDocument(document, chunksOf(document, [`Boil ${id}.`]));
      }
      const fact = await tell(memory, 'Water boils.', { touched: ['documents/d1'] });
      const { found, supported } = await remove(memory, named('documents/d1'));
      expect([found, supported]).toEqual([{ 'memory.semantic.chunk': 1, 'memory.semantic.document': 1 }, [`facts/${fact.id}`]]);
      expect((await semantic.documents(ALL, { limit: 9 })).map(({ id }) => id)).toEqual(['d2']);
      expect((await semantic.search(ALL, { text: 'boil', limit: 9, kinds: ['chunk'] })).map(({ id }) => id)).toEqual(['d2.0']);
    });

    it('removes a conversation with its turns', async ({ memory }) => {
      const said = (name: string) => {
        const messages = ['the shed is red', 'so is the boat'].map((text) => ({ role: 'user', name, text, at: null }));
        return memory.conversations.add({ scope: SCOPE, name, title: '', messages, writeId: name, first: null, at: (now += 1) });
      };
      const [ann, bob] = [(await said('ann')).conversation, (await said('bob')).conversation];
      const { found } = await remove(memory, named(`conversations/${ann.id}`));
      expect(found).toEqual({ 'memory.semantic.turn': 2, 'memory.semantic.conversation': 1 });
      expect((await memory.conversations.list(ALL, { limit: 9 })).map(({ id }) => id)).toEqual([bob.id]);
      expect((await memory.semantic.search(ALL, { text: 'shed', limit: 9 })).map(({ turn }) => turn?.name)).toEqual(['bob', 'bob']);
      expect((await said('ann')).conversation).toMatchObject({ id: ann.id, turns: 2 });
    });

    it('cuts a settled fact out of the wordings and decisions of others', async ({ memory }) => {
      const facts = [await tell(memory, 'Ann drinks green tea.'), await tell(memory, 'Ann likes green tea.')];
      const third = await tell(memory, 'Ann drinks green tea daily.');
      await memory.semantic.settle('acme', withinBudget(new FakeChatModel(Array<FakeAnswer>(9).fill(judge))));
      expect(await memory.semantic.get(ALL, third.id)).toMatchObject({ wordings: expect.arrayContaining([expect.anything()]) });
      for (const { id } of facts) {
        const { supported } = await remove(memory, named(`facts/${id}`));
        expect(supported).toContain(`facts/${third.id}`);
      }
      const left = await memory.semantic.get(ALL, third.id);
      expect([left?.wordings, left?.decisions]).toEqual([[], []]);
      const lines = (await exportOf(memory)).join();
      for (const { id, text } of facts) expect([lines.includes(text), lines.includes(id)]).toEqual([false, false]);
      expect(await memory.store.search(ALL, 'semantic', { vector: null, text: 'likes', limit: 9 })).toEqual([]);
    });

    it('removes a version of a procedure, and none of another owner', async ({ memory }) => {
      const { procedural } = memory;
      for (const scope of [SCOPE, BOBS]) await procedural.storeProcedure(`p1 ${scope.user}`, scope, 'moor_boat', 'Throw the bow line.');
      await procedural.storeProcedure('p2', SCOPE, 'moor_boat', 'Throw the stern line.');
      await memory.episodic.storeEpisode(episodeOf({ id: EPISODE, touched: [procedureSource(SCOPE, 'moor_boat', 2)] }));
      await memory.episodic.storeEpisode(episodeOf({ id: 'x1', rolloutId: 'x1', skillsUsed: ['moor_boat@2'] }));
      const { found, supported } = await remove(memory, named('skills/moor_boat@2'));
      expect(found).toEqual({ 'memory.procedural.skill': 1 });
      expect(supported).toEqual([`episodes/${ROLLOUT}`, 'episodes/x1', 'skills/moor_boat@1']);
      const left = await Array.fromAsync(procedural.every(ALL));
      expect(left.map(({ version, scope }) => [version, scope.user])).toEqual([
        [1, null],
        [1, 'bob'],
      ]);
    });

    it('cuts every copy out of the lists of recalled memories', async ({ memory }) => {
      const fact = await tell(memory, 'Whales sing at night.');
      const item = { layer: 'semantic', kind: 'fact', title: 't', text: fact.text, score: 1, similarity: 1 } as const;
      const skill = { ...item, layer: 'procedural', kind: 'skill', id: 'moor_boat@1' } as const;
      const recalled = [{ ...item, id: fact.id }, { ...item, id: `${fact.id}.2` }, skill];
      for (const agent of ['coder', 'other'])
        await memory.episodic.storeTransition(transitionOf({ id: `t-${agent}`, scope: { ...SCOPE, agent }, recalled }));
      expect((await remove(memory, named(`facts/${fact.id}`))).copies).toEqual({ 'memory.episodic.recalled': 2 });
      expect((await remove(memory, named('skills/moor_boat@1'))).copies).toEqual({ 'memory.episodic.recalled': 1 });
      const left = async (agent: string) => (await memory.get(ALL, 'episodic', `t-${agent}`))?.fields['recalled'];
      expect([await left('coder'), await left('other')]).toEqual([recalled.slice(1, 2), recalled.slice(1)]);
    });

    it('refuses an import of the deleted record only', async ({ memory }) => {
      const facts = [await tell(memory, 'Whales sing at night.'), await tell(memory, 'Bees dance by day.')];
      const lines = await exportOf(memory);
      for (const { id } of facts) await remove(memory, named(`facts/${id}`, id === facts[0]?.id ? SCOPE : BOBS));
      await memory.store.remove({ tenant: 'acme' }, 'semantic', { kinds: ['fact'] });
      const report = await memory.upkeep.importLines('acme', linesOf(lines), {});
      expect(report).toMatchObject({ added: 1, refused: [{ reason: expect.stringContaining('was erased') }] });
      expect((await memory.semantic.list(ALL, 9)).map(({ id }) => id)).toEqual([facts[1]?.id]);
    });

    it('changes nothing in another tenant', async ({ memory }) => {
      const theirs = factOf({ text: 'Whales sing.', scope: { ...SCOPE, tenant: 'beta' } });
      const { fact } = await memory.semantic.store('w', theirs);
      const { found, supported } = await remove(memory, named(`facts/${fact.id}`));
      expect([found, supported]).toEqual([{}, []]);
      expect(await memory.semantic.get({ tenant: 'beta', agent: null }, fact.id)).toMatchObject({ text: 'Whales sing.' });
    });
  });

  describe('listing records', () => {
    it('pages newest first, each record once, also of one time', async ({ memory }) => {
      const told = await Promise.all(
        Array.from({ length: 9 }, (_, i) => tell(memory, `Bird ${'abcdefghi'[i]} sings.`, { createdAt: NEW_YEAR + Math.floor(i / 4) })),
      );
      const pages = await pagesOf(memory, { kind: 'fact', limit: 2 });
      expect(pages.map((page) => page.length)).toEqual([2, 2, 2, 2, 1]);
      const expected = told.toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1)).map(({ id }) => id);
      expect(pages.flat().map(({ id }) => id)).toEqual(expected);
    });

    it('shows what the reader sees, and with all what search does not find', async ({ memory }) => {
      const subject = 'editor of Ann';
      const old = await tell(memory, 'Ann uses Vim.', { subject, category: 'tools' });
      const current = await tell(memory, 'Ann uses vi.', { subject, category: 'tools' });
      const bobs = await tell(memory, 'Bob uses ed.', { scope: BOBS });
      const idsOf = async (query: object, scope = ALL) =>
        (await pagesOf(memory, { kind: 'fact', limit: 5, ...query }, scope)).flat().map(({ id }) => id);
      expect(await idsOf({})).toEqual([bobs.id, current.id]);
      expect(await idsOf({ category: 'tools', all: true })).toEqual([current.id, old.id]);
      expect(await idsOf({}, { ...ALL, user: 'ann' } as typeof ALL)).toEqual([current.id]);
      expect(await idsOf({}, { tenant: 'beta', agent: null })).toEqual([]);
    });
  });
}
