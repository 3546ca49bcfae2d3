import type { JsonObject } from '@bufbuild/protobuf';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { SkillVerify } from '@etude/contracts/queues';
import { OutboxReader } from '@etude/queue/memory/memory-outbox';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { skillOf } from '@etude/domain/testing/memory-records';
import { documentOf, gatewayForFile, type KeyName, refusal } from './gateway.harness.js';

const rig = gatewayForFile({ ETUDE_SKILLS_ENABLED: 'true' });
const memory = (key: KeyName = 'acme') => rig.client(Memory, key);
const AGENT = 'scout';
const store = (text: string, more: object = {}) => memory().storeFact({ agent: AGENT, text, ...more });

const document = (name: string, text: string, head: object = {}) => documentOf({ name, agent: AGENT, ...head }, text);

describe('facts', () => {
  it('change only in the named fields', async () => {
    const { fact } = await store('The ferry leaves at noon on Sundays.');
    const id = fact?.id ?? '';
    const changed = await memory().updateFact({ id, confidence: 0.4, text: 'ignored', updateMask: { paths: ['confidence'] } });
    expect(changed.fields).toMatchObject({ confidence: 0.4, fact: 'The ferry leaves at noon on Sundays.' });
    expect(await refusal(memory().updateFact({ id, updateMask: { paths: ['scope'] } }))).toMatchObject({ fields: ['update_mask'] });
    expect((await memory().updateFact({ id, confidence: 0.6 })).fields).toMatchObject({ confidence: 0.6, fact: changed.fields?.['fact'] });
    expect(await refusal(memory().updateFact({ id }))).toMatchObject({ fields: ['update_mask'] });
  });

  it('are refused if they hold a secret, which no answer shows', async () => {
    const secret = 'ghp_0123456789abcdefghijABCDEFGHIJ012345';
    const text = `Use ${secret} for the mirror.`;
    const { fact } = await store('The kettle is blue.');
    const episode = { agent: AGENT, context: [text], outcomes: [{ type: 'passed' }] };
    const calls = [
      store(text),
      memory().updateFact({ id: fact?.id ?? '', text }),
      memory().storeEpisode(episode),
      memory().storeProcedure({ agent: AGENT, name: 'boil_water', prompt: text }),
      store('The kettle is red.', { subject: text }),
      rig.client(Skills).requestSkill({ agent: AGENT, name: 'boil_water', description: text }),
    ];
    for (const refused of await Promise.all(calls.map(refusal))) {
      expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT, message: expect.stringContaining('must not hold a secret') });
      expect(JSON.stringify(refused)).not.toContain(secret);
    }
  });

  it('show what a judge decided about them, and undo it once', async () => {
    const ids = ['The kiosk opens at six', 'The kiosk opens at seven'].map(async (text) => (await store(text)).fact?.id ?? '');
    const [older = '', newer = ''] = await Promise.all(ids);
    const open = await rig.openMemory();
    expect((await memory().getMemoryStats({})).settling).toMatchObject({ unsettled: 1n, failure: '' });
    const answer = { finishReason: 'stop', model: 'oracle', scripted: false, inputTokens: 1, outputTokens: 1, costUsd: 0 } as const;
    const text = JSON.stringify({ pairs: [{ verdict: 'replaces', reason: 'other hours' }] });
    await open.semantic.settle('acme', {
      model: { chat: async () => ({ ...answer, text }) },
      budget: { left: async () => ({ calls: 9, promptTokens: 9_000 }), charge: async () => undefined },
      isOn: async () => true,
      signal: new AbortController().signal,
    });
    await open.close();
    const { decisions } = await memory().listFactHistory({ id: older });
    expect(decisions).toMatchObject([
      { newer, older, olderText: 'The kiosk opens at six', verdict: 'replaces', reason: 'other hours', by: 'oracle' },
    ]);
    expect((await refusal(memory('globex').undoFactDecision({ id: older, other: newer }))).status).toBe(status.NOT_FOUND);
    const undone = await memory().undoFactDecision({ id: older, other: newer });
    expect(undone.facts.map(({ fields }) => fields?.['superseded_by'])).toEqual([undefined]);
    expect((await memory().listFactHistory({ id: newer })).decisions).toMatchObject([{ verdict: 'differs', by: 'acme' }]);
  });

  it.each([
    [{ text: '' }, 'text', 'text: must not be empty'],
    [{ text: '\u200B\uFEFF' }, 'text', 'text: must have a visible character'],
    [{ text: 'fine', confidence: 1.5 }, 'confidence', 'confidence: must be'],
    [{ text: 'fine', requestId: 'no good' }, 'request_id', 'request_id: must start with a letter or digit'],
  ])('are refused with %j, with the field in the message', async (request, field, said) => {
    const refused = await refusal(store('', request));
    expect(refused.status).toBe(status.INVALID_ARGUMENT);
    expect(new Set(refused.fields)).toEqual(new Set([field]));
    expect(refused.message).toContain(said);
    expect(refused.message).not.toMatch(/Too small|Invalid|>=/);
  });
});

it.each([
  ['storeEpisode', 'context', { context: ['', '\u200B'], outcomes: [{ type: 'passed' }] }],
  ['searchMemory', 'query', { query: '\u200B' }],
] as const)('%s refuses a %s without visible characters', async (method, field, request) => {
  const call = memory()[method] as (asked: object) => Promise<unknown>;
  expect(await refusal(call({ agent: AGENT, ...request }))).toMatchObject({ status: status.INVALID_ARGUMENT, fields: [field] });
});

it('procedures become candidates and are verified if a reviewer archived a skill of that name', async () => {
  const row = (prompt: string) => memory().storeProcedure({ agent: AGENT, name: 'row_boat', prompt });
  await row('Row gently.');
  await rig.client(Skills, 'rev').archiveSkill({ name: 'skills/row_boat', agent: AGENT, reason: 'wrong' });
  expect((await row('Row hard.')).fields).toMatchObject({ version: 2, status: 'candidate' });
  const jobs = await rig.producer.queue(SkillVerify.name).getJobs();
  expect(jobs.map(({ data }) => data)).toMatchObject([expect.objectContaining({ name: 'row_boat', version: 2 })]);
  expect(await refusal(row('Row gently.'))).toMatchObject({ status: status.FAILED_PRECONDITION });
});

it('an untried procedure is found by a search for procedures, and counts the episodes that name it and the calls for its words', async () => {
  await memory().storeProcedure({ agent: AGENT, name: 'hoist_sail', prompt: 'Head into the wind, then pull the halyard.' });
  const { hits } = await memory().searchMemory({ query: 'pull the halyard into the wind', layers: ['procedural'] });
  expect(hits.map(({ id }) => id)).toEqual(['hoist_sail@1']);
  const uses = async () => {
    const reader = new OutboxReader(rig.producer.redis, rig.producer.keys);
    const ids = await rig.producer.redis.hkeys(rig.producer.keys.memoryOutbox('acme'));
    const writes = await Promise.all(ids.map((id) => reader.load('acme', id)));
    return writes.flatMap((write) => (write?.kind === 'skill_use' && write.name === 'hoist_sail' ? [write.success] : []));
  };
  const episode = { agent: AGENT, context: ['sailing'], skillsUsed: ['hoist_sail', 'no_such_skill'] };
  await memory().storeEpisode({ ...episode, outcomes: [{ type: 'action_error' }] });
  expect(await uses()).toEqual([false]);
  await memory().storeEpisode({ ...episode, outcomes: [{ type: 'action_error' }] });
  expect(await uses()).toEqual([false]);
  const used = await rig.client(Skills).useSkill({ name: 'skills/hoist_sail', agent: AGENT });
  expect(used).toMatchObject({ success: true, output: 'Head into the wind, then pull the halyard.' });
  expect(new Set(await uses())).toEqual(new Set([false, true]));
});

it('refuses the lines of an import that hold a secret, and takes the others', async () => {
  const { fact } = await store('The lamp is green.');
  const lines = (await Array.fromAsync(memory().exportMemory({}))).flatMap((message) => message.lines);
  const [line = ''] = lines.filter((one) => one.includes(fact?.id ?? ''));
  const told = ['AKIAIOSFODNN7EXAMPLQ', 'green'].map((word, n) => line.replaceAll('green', word).replaceAll(fact?.id ?? '', `kept${n}`));
  const { added, refused } = await memory('globex').importMemory({ lines: [lines[0]!, ...told] });
  expect(added).toBe(1n);
  expect(refused).toMatchObject([{ line: 2n, reason: expect.stringContaining('must not hold a secret: ') }]);
});

describe('documents', () => {
  const text = '# Knots\n\n## Bowline\n\nA bowline makes a loop that holds.\n\n## Clove hitch\n\nA clove hitch ties a rope to a post.\n';

  it('are replaced by new content of the same name, and deleted', async () => {
    await memory().importDocument(document('knots.md', text));
    const next = await memory().importDocument(document('knots.md', '# Knots\n\nOnly a reef knot is left.\n'));
    expect(next.outcome).toBe('replaced');
    const id = next.document?.id ?? '';
    expect((await memory().listDocuments({})).documents.map((one) => one.id)).toContain(id);
    expect((await refusal(memory('globex').deleteDocument({ id }))).status).toBe(status.NOT_FOUND);
    await memory().deleteDocument({ id });
    expect((await memory().listDocuments({})).documents.map((one) => one.id)).not.toContain(id);
    expect((await refusal(memory().deleteDocument({ id }))).status).toBe(status.NOT_FOUND);
  });

  it('are stored with their secrets masked, and the answer counts them', async () => {
    const secret = 'AKIAIOSFODNN7EXAMPLQ';
    const { document: imported, maskedSecrets } = await memory().importDocument(document('keys.md', `# Keys\n\nPaint with ${secret}.\n`));
    expect(maskedSecrets).toBe(1);
    const lines = (await Array.fromAsync(memory().exportMemory({}))).flatMap((message) => message.lines).join('\n');
    expect(lines).toContain('Paint with [masked: aws].');
    expect(lines).not.toContain(secret);
    await memory().deleteDocument({ id: imported?.id ?? '' });
  });

  it.each([
    ['only spaces', document('knots.md', ' \n\n '), 'has no text'],
    ['a broken PDF', document('knots.pdf', 'no PDF at all'), 'knots.pdf'],
    ['a wrong digest', document('knots.md', text, { sha256: '0'.repeat(64) }), 'sha256'],
  ])('are refused with %s', async (_what, requests, said) => {
    const { status: code, message } = await refusal(memory().importDocument(requests));
    expect(code).toBe(status.INVALID_ARGUMENT);
    expect(message).toContain(said);
  });
});

it('archives and restores the selected records', async () => {
  await store('The south buoy rings in fog.');
  const request = { scoreMax: 1, olderThanDays: 0, layers: ['semantic'] };
  const plan = await memory().archiveMemory({ ...request, dryRun: true });
  expect(Number(plan.archived)).toBeGreaterThan(0);
  expect(await memory().archiveMemory(request)).toMatchObject({ archived: plan.archived });
  expect((await memory().searchMemory({ query: 'the south buoy', kinds: ['fact'] })).hits).toEqual([]);
  expect((await memory().restoreMemory({})).restored).toBe(plan.archived);
});

it('another tenant sees no record of the first tenant in any call', async () => {
  const { fact } = await store('The secret cove is behind the third rock.');
  const theirs = memory('globex');
  const id = fact?.id ?? '';
  const found = await theirs.searchMemory({ query: 'secret cove third rock' });
  expect(JSON.stringify(found.hits.map(({ text }) => text))).not.toContain('cove');
  expect((await refusal(theirs.getMemory({ id, layer: 'semantic' }))).status).toBe(status.NOT_FOUND);
  expect((await refusal(theirs.listFactHistory({ id }))).status).toBe(status.NOT_FOUND);
  expect((await refusal(theirs.updateFact({ id, confidence: 0, updateMask: { paths: ['confidence'] } }))).status).toBe(status.NOT_FOUND);
  expect((await theirs.recall({ context: 'secret cove third rock' })).facts.map(({ text }) => text).join()).not.toContain('cove');
});

/** The status of a read of a record that should be gone. */
const statusOf = async (id: string, layer: string) => (await refusal(memory().getMemory({ id, layer }))).status;

describe('deleting one record', () => {
  it('deletes an episode by its reflection, a document by a chunk, and a conversation by a turn', async () => {
    const episode = await memory().storeEpisode({ agent: AGENT, context: ['a seal on the pier'], reflection: 'Seals bite.' });
    await memory().deleteMemory({ id: episode.id, layer: 'semantic' });
    for (const layer of ['semantic', 'episodic']) expect(await statusOf(episode.id, layer)).toBe(status.NOT_FOUND);
    const { document: imported } = await memory().importDocument(document('seals.md', '# Seals\n\nSeals eat herring.\n'));
    const { records } = await memory().listMemory({ kind: 'chunk', agent: AGENT });
    const chunk = records.find(({ fields }) => fields?.['document_id'] === imported?.id);
    await memory().deleteMemory({ id: chunk?.id ?? '', layer: 'semantic' });
    const messages = ['The seal is asleep.', 'It woke up.'].map((text) => ({ role: 'user', text }));
    const { conversation } = await memory().addConversation({ agent: AGENT, name: 'seals', messages });
    const turns = await memory().listMemory({ kind: 'turn', agent: AGENT });
    expect(new Set(turns.records.map(({ fields }) => fields?.['text']))).toEqual(new Set(messages.map(({ text }) => text)));
    await memory().deleteMemory({ id: turns.records[0]?.id ?? '', layer: 'semantic' });
    expect(await statusOf(conversation?.id ?? '', 'semantic')).toBe(status.NOT_FOUND);
    expect((await memory().listMemory({ kind: 'turn', agent: AGENT })).records).toEqual([]);
    expect((await memory().listDocuments({})).documents.map((one) => one.id)).not.toContain(imported?.id);
  });

  it('deletes a procedure in words, a shared one only for reviewers, and no skill with code', async () => {
    const told = await rig.openMemory();
    await told.procedural.storeProcedure('w', { tenant: 'acme', agent: '@tenant', user: null }, 'fold_sail', 'Fold it twice.');
    const shared = { id: 'fold_sail@1', layer: 'procedural', agent: '@tenant' };
    expect((await refusal(memory().deleteMemory(shared))).status).toBe(status.PERMISSION_DENIED);
    expect(await memory('rev').deleteMemory(shared)).toMatchObject({ state: 'running' });
    await told.procedural.store(skillOf({ scope: { tenant: 'acme', agent: AGENT, user: null } }));
    const coded = { id: 'sum_even@1', layer: 'procedural', agent: AGENT };
    expect(await refusal(memory('rev').deleteMemory(coded))).toMatchObject({ status: status.FAILED_PRECONDITION });
  });

  it("names a user's skill only to callers who see it", async () => {
    const { fact } = await store('The buoy bell rings twice.');
    const told = await rig.openMemory();
    for (const user of ['ann', null]) {
      const scope = { tenant: 'acme', agent: AGENT, user };
      await told.procedural.store(skillOf({ scope, name: `ring_${user ?? 'all'}`, sources: [`facts/${fact?.id}`] }));
    }
    const request = { id: fact?.id ?? '', layer: 'semantic', requestId: 'delete-1' };
    const receipt = await memory().deleteMemory(request);
    expect(receipt).toMatchObject({ state: 'running', supported: ['skills/ring_all@1'] });
    expect(await memory().getErasure({ id: receipt.id })).toMatchObject({ supported: receipt.supported });
    expect((await refusal(memory().deleteMemory({ ...request, id: 'other' }))).status).toBe(status.ALREADY_EXISTS);
  });

  it('is refused outside of its tenant, agent and user', async () => {
    const { fact } = await store('The anchor weighs a ton.', { user: 'ann' });
    const id = fact?.id ?? '';
    for (const [key, whose] of [
      ['globex', {}],
      ['acme', { user: 'bob' }],
      ['acme', { agent: 'other' }],
    ] as const)
      expect((await refusal(memory(key).deleteMemory({ id, layer: 'semantic', ...whose }))).status).toBe(status.NOT_FOUND);
    expect(await memory().getMemory({ id, layer: 'semantic', user: 'ann' })).toMatchObject({ id });
  });
});

it("lists of records show users' procedures to reviewers, and else to their user", async () => {
  await memory().storeProcedure({ agent: 'cook', user: 'ann', name: 'boil_egg', prompt: 'Six minutes.' });
  const names = async (key: KeyName, whose: object = {}) =>
    (await memory(key).listMemory({ kind: 'skill', agent: 'cook', ...whose })).records.map(({ id }) => id);
  expect([await names('acme'), await names('rev'), await names('acme', { user: 'ann' }), await names('acme', { user: 'bob' })]).toEqual([
    [],
    ['boil_egg@1'],
    ['boil_egg@1'],
    [],
  ]);
});

describe('erasure and re-embedding', () => {
  it('erases for exactly one named owner', async () => {
    expect((await refusal(memory().eraseMemory({}))).status).toBe(status.INVALID_ARGUMENT);
    const other = await refusal(memory().eraseMemory({ whose: { case: 'tenant', value: 'globex' } }));
    expect(other).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['tenant'] });
  });

  it('returns a receipt with the state of the erasure, to the own tenant only', async () => {
    const receipt = await memory().eraseMemory({ requestId: 'erase-1', whose: { case: 'user', value: 'somebody' } });
    expect(receipt).toMatchObject({ state: 'running' });
    expect((await memory().getErasure({ id: receipt.id })).id).toBe(receipt.id);
    expect((await memory().eraseMemory({ requestId: 'erase-1', whose: { case: 'user', value: 'somebody' } })).id).toBe(receipt.id);
    expect((await refusal(memory('globex').getErasure({ id: receipt.id }))).status).toBe(status.NOT_FOUND);
  });
});

const episode = { agent: AGENT, context: ['fog'] };

function nested(depth: number): JsonObject {
  return depth === 1 ? { deepest: true } : { deeper: nested(depth - 1) };
}

describe('a too large request is refused as a whole', () => {
  it.each([
    ['outcomes', { outcomes: Array.from({ length: 20_001 }, () => ({})) }],
    ['context', { context: Array.from({ length: 1_001 }, () => 'fog') }],
  ])('%s with too many entries', async (field, more) => {
    const refused = await refusal(memory().storeEpisode({ ...episode, ...more }));
    expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT, fields: [field] });
    expect(refused.message).toContain('must have at most');
  });

  it.each([
    [25, 'outcomes[1]: is nested deeper than 24 lists and objects'],
    [150, '(request): has lists and objects nested too deeply for a message'],
  ])('an outcome with %i levels of objects', async (depth, said) => {
    const refused = await refusal(memory().storeEpisode({ ...episode, outcomes: [nested(24), nested(depth)] }));
    expect(refused.status).toBe(status.INVALID_ARGUMENT);
    expect(refused.message).toContain(said);
    expect(refused.message).not.toContain('protobuf');
  });
});

const showsOf = (user: string | null, ids: readonly string[], shown: boolean) =>
  ids.map((id) => ({ layer: 'procedural' as const, kind: 'skill', id, owner: { agent: 'lifter', user }, shown }));

async function countShows() {
  const open = await rig.openMemory();
  const scope = { tenant: 'acme', agent: 'lifter', user: null };
  for (const n of Array.from({ length: 24 }, (_, at) => at)) {
    const items = [...showsOf(null, ['row@1'], n % 2 === 0), ...showsOf('ann', ['sail@1'], true)];
    const write = { kind: 'shows', scope, shows: items, right: n % 2 === 1, tokens: 100 + n, at: Date.now() } as const;
    await open.appliedWrites.apply('acme', `lift-${n}.shows`, write);
  }
}

it('what memory is worth is told for all, by layer and by item, without the skills of other users', async () => {
  await countShows();
  const { memory: all, layers, items } = await memory().getLift({ agent: 'lifter' });
  expect(all).toMatchObject({ shown: 12n, shownRight: 0n, withheld: 12n, withheldRight: 12n, success: { estimate: -1 }, harmful: true });
  expect(layers.map(({ layer, shown }) => [layer, shown])).toEqual([
    ['episodic', 0n],
    ['semantic', 0n],
    ['procedural', 12n],
  ]);
  expect(items).toMatchObject([{ layer: 'procedural', kind: 'skill', id: 'row@1', agent: 'lifter', tokens: { estimate: -1 } }]);
  const anns = await memory().getLift({ agent: 'lifter', user: 'ann', item: 'sail@1', layer: 'procedural' });
  expect(anns.items).toMatchObject([{ id: 'sail@1', user: 'ann', shown: 24n, withheld: 0n }]);
  expect(anns.items[0]?.success).toBeUndefined();
  expect(await refusal(memory().getLift({ layer: 'all' }))).toMatchObject({ fields: ['layer'] });
  expect((await memory('globex').getLift({ agent: 'lifter' })).memory).toMatchObject({ shown: 0n });
});

const ann = { agent: 'scout', user: 'ann', requestId: 'r1' };

/** Calls that store a record with a text. */
const CALLS = {
  facts: (text: string, owner: object) => memory().storeFact({ ...owner, text }),
  episodes: (text: string, owner: object) => memory().storeEpisode({ ...owner, context: [text], outcomes: [{ b: 1, a: 2 }] }),
  procedures: (text: string, owner: object) => memory().storeProcedure({ ...owner, name: 'open_safe', prompt: text }),
};

const shown = (answer: object) => JSON.stringify(answer, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

describe.each(Object.entries(CALLS))('a request id of %s', (_what, send) => {
  const secret = 'The safe opens with 4711.';

  it('gives the same answer to the same request', async () => {
    const first = shown(await send(secret, ann));
    expect(first).toContain('4711');
    expect(shown(await send(secret, ann)).replace('unchanged', 'added')).toBe(first);
  });

  it.each([
    ['another text', { ...ann }, 'The gate is green.'],
    ['another user', { ...ann, user: 'bob' }, secret],
    ['no user', { ...ann, user: '' }, secret],
    ['another agent', { ...ann, agent: 'other' }, secret],
  ])('is refused with %s, and the error does not contain the stored text', async (_how, owner, text) => {
    const refused = await refusal(send(text, owner));
    expect(refused).toMatchObject({ status: status.ALREADY_EXISTS, code: 'ALREADY_EXISTS' });
    expect(refused.message).not.toContain('4711');
    expect(refused.message).toContain('request_id');
  });
});

it('request ids are separate for each tenant', async () => {
  const theirs = await rig.client(Memory, 'globex').storeFact({ ...ann, text: 'The gate is green.' });
  expect(shown(theirs)).not.toContain('4711');
});

it('the size of the store is shown to operators only', async () => {
  const stats = await memory().getMemoryStats({});
  expect(stats).toMatchObject({ adapter: 'sqlite', diskBytes: 0n, memoryBytes: 0n });
  expect(stats.layers.find(({ kind }) => kind === 'fact')?.records).toBeGreaterThan(0n);
  expect((await rig.client(Memory, 'ops').getMemoryStats({})).diskBytes).toBeGreaterThan(0n);
});
