import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { episodeOf, factOf, NEW_YEAR, SCOPE, skillOf, transitionOf } from '@etude/domain/testing/memory-records';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { exportOf, linesOf } from '../../test/upkeep-samples.js';
import type { MemoryRecord, Owners, RecordStore } from '../record-store.js';
import { episodeRecord, transitionRecord } from '../layers/episodic-layer.js';
import { insertsOf } from '../layers/records.js';
import { markApplied } from '../layers/repeats.js';
import { semanticLayer } from '../layers/semantic-layer.js';
import { factOfRecord, factRecord as factRecordOf } from '../layers/fact-records.js';
import { learnedRecords } from '../layers/source-index.js';
import { skillRecord } from '../layers/skill-records.js';
import { forbid, guardedStore, isErased } from './erasure-marks.js';
import type { MemoryUpkeep } from '../memory.js';
import { recordUpkeep } from './record-upkeep.js';

const DAY_MS = 86_400_000;
const embedder = new LexicalEmbedder();
const ACME = { tenant: 'acme' };
const BOB = { ...ACME, user: 'bob' };

let now: number;
let store: RecordStore;
let upkeep: MemoryUpkeep;
let logged: unknown[];

beforeEach(() => {
  now = NEW_YEAR;
  logged = [];
  [store, upkeep] = opened();
});

function opened(): [RecordStore, MemoryUpkeep] {
  const made = guardedStore(modelStore());
  return [made, recordUpkeep({ store: made, embedder, clock: { now: () => now }, log: (_message, details) => logged.push(details) })];
}

const factRecord = (part: Parameters<typeof factOf>[0] = {}): MemoryRecord => factRecordOf(factOf(part), []);

const write = async (...records: readonly MemoryRecord[]) => store.write('acme', await insertsOf(embedder, records));
const shownKeys = async () => {
  const found = await Promise.all(
    (['episodic', 'semantic', 'procedural'] as const).map((layer) =>
      store.find({ tenant: 'acme', agent: null }, layer, { shown: true }, { order: 'key', limit: 100 }),
    ),
  );
  return found.flat().map(({ key }) => key);
};

const erase = async (owners: Owners) => upkeep.erase(owners, { before: await upkeep.newFrom(owners) });

describe('erasing', () => {
  const bobs = { tenant: 'acme', agent: 'coder', user: 'bob' };

  it('removes exactly the records of the owner, in every layer', async () => {
    await write(
      factRecord({ id: 'f1', scope: bobs }),
      factRecord({ id: 'f2', text: 'Whales sing at night.' }),
      transitionRecord(transitionOf({ scope: bobs })),
      skillRecord(skillOf({ scope: bobs }), []),
      episodeRecord(episodeOf()),
    );
    const ofBob = { 'memory.semantic.fact': 1, 'memory.episodic.transition': 1, 'memory.procedural.skill': 1 };
    expect([await upkeep.findErased(BOB), await erase(BOB)]).toEqual([ofBob, ofBob]);
    expect(await upkeep.findErased(BOB)).toEqual({});
    expect(await upkeep.findErased(ACME)).toEqual({ 'memory.semantic.fact': 1, 'memory.episodic.episode': 1 });
  });

  it('refuses records made before it, and stores records made after it', async () => {
    await forbid(store, BOB, now);
    const late = await write(factRecord({ id: 'f1', scope: bobs, createdAt: now - 1 })).catch((error: unknown) => error);
    expect(isErased(late)).toBe(true);
    expect(await write(factRecord({ id: 'f2', scope: bobs, createdAt: now }))).toEqual([true]);
    expect(await write(factRecord({ id: 'f3', createdAt: now - 1 }))).toEqual([true]);
    await forbid(store, { tenant: 'acme', agent: 'coder' }, now);
    expect(isErased(await write(factRecord({ id: 'f4', createdAt: now - 1 })).catch((error: unknown) => error))).toBe(true);
    expect(await upkeep.findErased(BOB, now)).toEqual({});
  });

  it('undoes a write that ends after the erasure', async () => {
    const plain = modelStore();
    const racing = guardedStore({
      ...plain,
      async write(tenant, changes) {
        if (changes[0]?.record.kind === 'fact')
          await recordUpkeep({ store: plain, embedder, clock: { now: () => now } }).erase(BOB, { before: now });
        return plain.write(tenant, changes);
      },
    });
    const changes = await insertsOf(embedder, [factRecord({ id: 'f1', scope: bobs, createdAt: now - 1 })]);
    expect(isErased(await racing.write('acme', changes).catch((error: unknown) => error))).toBe(true);
    expect(await plain.count(ACME, 'semantic', { kinds: ['fact'] })).toBe(0);
  });

  it('removes no record made since it began, in any repeat', async () => {
    await write(factRecord({ id: 'f1', scope: bobs, createdAt: now }));
    const before = await upkeep.newFrom(BOB);
    await upkeep.erase(BOB, { before });
    now += 10_000;
    await write(factRecord({ id: 'f2', scope: bobs, createdAt: now }));
    expect(await upkeep.findErased(BOB, before)).toEqual({});
    now += 1_000;
    expect(await upkeep.erase(BOB, { before })).toEqual({});
    expect(await shownKeys()).toEqual(['f2']);
    expect(await erase(BOB)).toEqual({ 'memory.semantic.fact': 1 });
  });

  it('removes records that are dated ahead', async () => {
    await write(
      factRecord({ id: 'soon', scope: bobs, createdAt: now + 2_000 }),
      factRecord({ id: 'never', scope: bobs, createdAt: now + 900 * DAY_MS }),
    );
    const before = await upkeep.newFrom(BOB);
    expect(before).toBe(now + 2_001);
    expect(await upkeep.findErased(BOB, before)).toEqual({ 'memory.semantic.fact': 2 });
    expect(await upkeep.erase(BOB, { before })).toEqual({ 'memory.semantic.fact': 2 });
    expect(await upkeep.findErased(BOB, before)).toEqual({});
  });

  it('refuses changes of records that it has yet to remove', async () => {
    await write(factRecord({ id: 'f1', scope: bobs, createdAt: now }), factRecord({ id: 'f2', createdAt: now }));
    const [bob, nobody] = await store.load({ tenant: 'acme', agent: null }, 'semantic', 'fact', ['f1', 'f2']);
    await forbid(store, BOB, now + 1);
    const update = (record: typeof bob) => store.write('acme', record === undefined ? [] : [{ do: 'update', record, revision: 1 }]);
    expect([await update(bob), await update(nobody)]).toEqual([[false], [true]]);
    expect(await shownKeys()).toEqual(['f2']);
    expect(await write(factRecord({ id: 'f1', scope: bobs, createdAt: now + 1 }))).toEqual([true]);
  });

  it('stores no name in its mark, and keeps its mark when all is erased', async () => {
    await erase({ ...ACME, agent: 'secret-agent', user: 'secret-user' });
    await erase(ACME);
    const marks = await store.find({ tenant: 'acme', agent: null }, 'semantic', {}, { order: 'key', limit: 9 });
    expect(marks.map(({ kind }) => kind)).toEqual(['erasure', 'erasure']);
    expect(JSON.stringify(marks)).not.toContain('secret');
  });
});

describe('archiving', () => {
  const policy = { scoreMax: 0.2, olderThanDays: 30 };

  it('hides old records of low worth, and restores them unchanged', async () => {
    await write(
      factRecord({ id: 'poor', confidence: 0.1 }),
      factRecord({ id: 'old', confidence: 0.5, validTo: 5 }),
      factRecord({ id: 'good', confidence: 1 }),
      skillRecord(skillOf({ name: 'active_one', status: 'active', successRate: 0.1 }), []),
      skillRecord(skillOf({ name: 'archived_one', status: 'archived', successRate: 0.1 }), []),
    );
    now += 31 * DAY_MS;
    const before = await shownKeys();
    const planned = await upkeep.archive(ACME, policy, { dryRun: true });
    expect(planned).toMatchObject({ looked: 3, archived: 2 });
    expect(planned.examples.map(({ id }) => id).toSorted()).toEqual(['active_one@1', 'poor']);
    expect(await shownKeys()).toEqual(before);
    expect(await upkeep.archive(ACME, policy, { dryRun: false })).toEqual(planned);
    expect(await shownKeys()).toEqual(['good']);
    expect(await upkeep.archive(ACME, policy, { dryRun: false })).toMatchObject({ looked: 1, archived: 0 });
    const { layers } = await upkeep.stats('acme');
    expect(layers.filter(({ archived }) => archived > 0)).toEqual([
      { layer: 'semantic', kind: 'fact', records: 3, archived: 1 },
      { layer: 'procedural', kind: 'skill', records: 2, archived: 1 },
    ]);
    expect(await upkeep.restore(ACME, ['poor'])).toBe(1);
    expect(await upkeep.restore(ACME)).toBe(1);
    expect(await shownKeys()).toEqual(before);
    const [skill] = await store.load({ tenant: 'acme', agent: null }, 'procedural', 'skill', before.slice(-1));
    expect(skill?.fields.status).toBe('active');
  });

  it('logs damaged records, and archives and restores the others', async () => {
    const damaged = { ...factRecord({ id: 'damaged' }), body: 'no JSON' };
    const counters = { ...damaged, kind: 'shows', key: 'counters', shown: false } as const;
    for (const record of [damaged, counters]) await store.write('acme', [{ do: 'insert', record, indexed: [] }]);
    await write(factRecord({ id: 'poor', confidence: 0.1 }));
    now += 31 * DAY_MS;
    expect(await upkeep.archive(ACME, policy, { dryRun: false })).toMatchObject({ looked: 2, archived: 1 });
    expect(await upkeep.archiveHarmful(ACME)).toBe(0);
    for (const record of await store.load({ tenant: 'acme', agent: null }, 'semantic', 'fact', ['damaged'])) {
      const hidden = { ...record, shown: false, fields: { ...record.fields, archived: 'yes' } };
      await store.write('acme', [{ do: 'update', record: hidden, revision: record.revision }]);
    }
    expect(await upkeep.restore(ACME)).toBe(1);
    expect(await shownKeys()).toEqual(['poor']);
    const place = { tenant: 'acme', layer: 'semantic' };
    const [fact, shows] = [
      { ...place, kind: 'fact', key: 'damaged' },
      { ...place, kind: 'shows', key: 'counters' },
    ];
    expect(logged).toEqual([fact, shows, fact]);
  });
});

const exported = () => exportOf({ upkeep });
const refusal = (line: string) => upkeep.importLines('acme', linesOf([line]), {}).catch((error: { code: string }) => error.code);

describe('export and import', () => {
  it('refuse a file that is no export of a known version', async () => {
    expect(await refusal('{"etude":"memory","version":2,"tenant":"acme"}')).toBe('FAILED_PRECONDITION');
    expect(await refusal('{"kind":"fact"}')).toBe('INVALID_ARGUMENT');
    expect(await refusal('no json')).toBe('INVALID_ARGUMENT');
    expect(await upkeep.importLines('acme', linesOf([]), {}).catch((error: { code: string }) => error.code)).toBe('INVALID_ARGUMENT');
  });

  it('refuse invalid lines by number, and import the others', async () => {
    await write(factRecord({ id: 'f1' }));
    const lines = await exported();
    const header = lines[0] ?? '';
    const good = lines.find((line) => line.includes('"kind":"fact"')) ?? '';
    const parsed = JSON.parse(good) as Record<string, unknown>;
    const bad = (change: object) => JSON.stringify({ ...parsed, ...change });
    [store, upkeep] = opened();
    const report = await upkeep.importLines(
      'acme',
      linesOf([
        `\uFEFF${header}\r`,
        '',
        '{"layer":',
        bad({ kind: 'erasure' }),
        bad({ agent: '../x' }),
        bad({ body: '{"value":{}}' }),
        bad({ agent: 'other' }),
        bad({ layer: 'episodic' }),
        bad({ extra: 1 }),
        'x'.repeat(16 * 1024 * 1024 + 1),
        `${good}\r`,
        bad({ body: JSON.stringify({ value: factOf({ id: 'f1', text: 'Something else.' }) }) }),
      ]),
      {},
    );
    expect(report).toMatchObject({ lines: 12, added: 1, unchanged: 0 });
    expect(report.refused.map(({ line }) => line)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 12]);
    expect(report.refused.at(-1)?.reason).toContain('is stored with other content');
    expect(report.refused[3]?.reason).toContain('body.value');
  });
});

it('revises each current fact of one tenant that rests on the names', async () => {
  await write(factRecord({ id: 'f1', text: 'Zebras eat grass.' }), factRecord({ id: 'f2', text: 'Walruses eat clams.', validTo: 1 }));
  await store.write('globex', await insertsOf(embedder, [factRecord({ id: 'f3', scope: { ...SCOPE, tenant: 'globex' } })]));
  for (const tenant of ['acme', 'nobody'])
    await learnedRecords(store).reviseFacts(tenant, ['episodes/e1'], (fact) => ({ ...fact, validTo: 9 }));
  const facts = async (tenant: string) =>
    (await store.load({ tenant, agent: null }, 'semantic', 'fact', ['f1', 'f2', 'f3'])).map(factOfRecord);
  expect((await facts('acme')).map(({ validTo }) => validTo)).toEqual([9, 1]);
  expect((await facts('globex')).map(({ validTo }) => validTo)).toEqual([undefined]);
});

const poisoned = () => skillRecord(skillOf({ name: 'bad', sources: ['documents/poison'] }), []);
const clean = () => skillRecord(skillOf({ name: 'clean', sources: ['tasks/t1'] }), []);
const restingOn = async (name: string) => {
  const each = vi.spyOn(store, 'each');
  const found = await Array.fromAsync(learnedRecords(store).restingOn('acme', [name]));
  const read = each.mock.calls.map(([, , { where }]) => where?.source);
  each.mockRestore();
  return { names: found.map((record) => ('name' in record ? record.name : record.id)), read };
};

describe('the index of sources', () => {
  it('finds records by a source, and reads no others', async () => {
    await write(
      poisoned(),
      clean(),
      episodeRecord(episodeOf({ id: 'e1', touched: ['documents/poison'] })),
      episodeRecord(episodeOf({ id: 'e2' })),
    );
    expect(await restingOn('documents/poison')).toEqual({ names: ['bad', 'e1'], read: [['documents/poison'], ['documents/poison']] });
  });

  it('stays out of exports, whose lines earlier versions read', async () => {
    await write(poisoned());
    const lines = (await exported()).map((line) => JSON.parse(line) as { fields?: object });
    expect(lines.at(-1)?.fields).toMatchObject({ name: 'bad' });
    expect(lines.at(-1)?.fields).not.toHaveProperty('source');
  });

  it('plans a deletion without reading other records', async () => {
    await write(factRecord({ id: 'f1' }), factRecord({ id: 'f2', text: 'Learned.', touched: ['facts/f1'] }), clean());
    const each = vi.spyOn(store, 'each');
    const { agent, user } = SCOPE;
    const { supported } = await upkeep.planDeletion('acme', { name: 'facts/f1', agent, user });
    expect(supported).toEqual([{ name: 'facts/f2', agent, user }]);
    expect(each.mock.calls.filter(([, , { where, keys }]) => (where ?? keys) === undefined)).toEqual([]);
    each.mockRestore();
  });

  it('finds records of earlier versions, which have no sources among their fields', async () => {
    const { source: _source, ...fields } = poisoned().fields;
    await write({ ...poisoned(), fields }, clean());
    expect(await restingOn('documents/poison')).toMatchObject({ names: ['bad'], read: [undefined, expect.anything(), expect.anything()] });
    expect(await restingOn('documents/poison')).toEqual({ names: ['bad'], read: [['documents/poison'], ['documents/poison']] });
  });
});

describe('reconciling', () => {
  it('reports an unreadable record, and checks the others', async () => {
    const skill = { ...skillRecord(skillOf({ status: 'active' }), []), key: 'odd', body: 'no json' };
    await store.write('acme', [{ do: 'insert', record: skill, indexed: [] }]);
    await write(skillRecord(skillOf({ name: 'whole', status: 'active' }), []));
    const { checked, problems } = await upkeep.reconcile();
    expect(checked).toMatchObject({ skills: 2 });
    expect(problems).toContainEqual(expect.stringContaining('skill "odd" of acme can\'t be read'));
  });

  it('keeps the notes of units and pages that gave no facts', async () => {
    const semantic = semanticLayer({ store, embedder, clock: { now: () => now } });
    await semantic.applyFacts('acme', 'unit', [], [{ unitId: 'page', scope: SCOPE }]);
    await upkeep.reconcile();
    expect([...(await semantic.appliedAmong('acme', ['unit', 'page']))]).toEqual(['unit', 'page']);
  });

  it('removes old notes of applied writes', async () => {
    const marks = ['old', 'recent'].map((id, i) => markApplied('semantic', SCOPE, id, now - (i === 0 ? 31 : 29) * DAY_MS));
    await store.write('acme', marks);
    await upkeep.reconcile();
    expect(await store.load({ tenant: 'acme', agent: null }, 'semantic', 'applied', ['old', 'recent'])).toMatchObject([{ key: 'recent' }]);
  });
});
