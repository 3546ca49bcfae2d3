// Every kind of record has its place in this file and in a list at the end of the file. An erasure that misses a kind leaves its data behind.
import { taskOfExecution } from '@etude/contracts/ids';
import { parsedJson } from '@etude/contracts/json';
import { MemoryWrite } from '@etude/contracts/memory';
import { ConsolidationRecord } from '@etude/contracts/memory-upkeep';
import { ExecutionRequest } from '@etude/contracts/sandbox';
import { WantedSkill } from '@etude/contracts/skill-proof';
import { factId } from '@etude/domain/facts/fact-plan';
import { writtenIn } from '@etude/domain/ports/memory';
import { isRecalledFrom, mayRead, type RecordOfTenant } from '@etude/domain/recall/deleted-record';
import type { Character } from '@etude/domain/world/world';
import { updatedAt } from '../agents/agent-settings-store.js';
import { readStored } from '../jobs/job-end.js';
import { ConsolidationStore, isOver, listedAs } from '../memory/consolidation-store.js';
import { OutboxReader } from '../memory/memory-outbox.js';
import { StoredErasure } from '../memory/upkeep-store.js';
import { consolidationKeys, memberOf } from '../redis/keys.js';
import { runScript, unlessDamaged } from '../redis/redis.js';
import { SandboxSessionStore } from '../sandboxes/sandbox-sessions.js';
import { storedIn } from '../worlds/worlds-store.js';
import {
  type Erased,
  type ErasurePlace,
  fieldsOf,
  isOwned,
  isOwnKey,
  keyedPlace,
  keysStartingWith,
  namedRecordOf,
  type Trace,
} from './erasure-place.js';

/** Writes that memory has not applied yet. A write that can't be parsed is erased only with its tenant. */
const OUTBOX: ErasurePlace = {
  name: 'queue.outbox',
  async *traces(erased) {
    const { tenant, producer } = erased;
    const reader = new OutboxReader(producer.redis, producer.keys);
    for await (const page of fieldsOf(producer.redis, producer.keys.memoryOutbox(tenant)))
      yield page.flatMap(([id, text]): readonly Trace[] => {
        const { data: write } = readStored(MemoryWrite, parsedJson(text));
        if (isOwnWrite(erased, write)) return [() => reader.remove(tenant, id)];
        // Memory removes the copy once it has applied the write.
        return isWrittenCopy(erased, write) ? [async () => false] : [];
      });
  },
};

function isOwnWrite(erased: Erased, write: MemoryWrite | undefined): boolean {
  if (write === undefined) return 'all' in erased.subject;
  const { scope, createdAt } = writtenIn(write);
  const record = namedRecordOf(erased);
  if (record !== null) return nameOfWrite(write) === record.name && mayRead(record, scope);
  return createdAt < erased.at && isOwned(erased, scope.agent, scope.user);
}

/**
 * The name of the record that a write makes or uses. null for a new skill, which gets its name from memory, and for a write of kind `shows`,
 * which memory refuses after the erasure.
 */
function nameOfWrite(write: MemoryWrite): string | null {
  if (write.kind === 'skill_use') return `skills/${write.name}@${write.version}`;
  if (write.kind === 'skill' || write.kind === 'shows') return null;
  if (write.kind === 'fact') return `facts/${write.fact.id}`;
  return `episodes/${(write.kind === 'episode' ? write.episode : write.transition).rolloutId}`;
}

/** Whether a write holds a copy of the record, because its attempt recalled the record. */
function isWrittenCopy(erased: Erased, write: MemoryWrite | undefined): boolean {
  const record = namedRecordOf(erased);
  if (record === null || write?.kind !== 'transition') return false;
  return write.transition.recalled.some((item) => isRecalledFrom(record, write.transition.scope, item));
}

/** Settings of agents. They hold no data of users. */
const AGENTS: ErasurePlace = {
  name: 'queue.agents',
  async *traces({ tenant, subject, at, producer: { redis, keys } }) {
    if ('user' in subject || 'record' in subject) return;
    const isOwn = (agent: string) => 'all' in subject || agent === subject.agent;
    for await (const page of fieldsOf(redis, keys.agents(tenant))) {
      const own = page.filter(([agent, text]) => isOwn(agent) && updatedAt(text) < at).map(([agent]) => agent);
      yield own.map((agent) => () => redis.hdel(keys.agents(tenant), agent));
    }
  },
};

/** The cost of comparing the tenant's facts, and the reason of the last failure. */
const SETTLING: ErasurePlace = {
  name: 'queue.settling',
  async *traces({ tenant, subject, producer: { redis, keys } }) {
    const key = keys.settling(tenant);
    if ('all' in subject && (await redis.exists(key)) === 1) yield [() => redis.del(key)];
  },
};

/** Costs of model calls. An agent's counts are removed from each day. Counts of a user or a record can't be told apart. */
const SPEND = keyedPlace({
  name: 'queue.spend',
  start: ({ producer, tenant }) => producer.keys.spend(tenant, ''),
  trace: async (erased, key) => {
    const { subject, producer } = erased;
    if ('all' in subject) return deletion(erased, key);
    if ('user' in subject || 'record' in subject) return null;
    const own = (await producer.redis.hkeys(key)).filter((field) => (JSON.parse(field) as [string])[0] === subject.agent);
    return own.length === 0 ? null : () => producer.redis.hdel(key, ...own);
  },
});

/** The tenant's field in the line of tasks and in the counts of refusals. They stay while the tenant has unfinished tasks. */
const LINE: ErasurePlace = {
  name: 'queue.line',
  async *traces({ producer: { redis, keys }, tenant, subject }) {
    if (!('all' in subject) || (await redis.scard(keys.openTasks(tenant))) > 0) return;
    const hashes = [keys.line, ...(await Array.fromAsync(keysStartingWith(redis, keys.refusals('')))).flat()];
    const own = await Promise.all(hashes.map((key) => redis.hexists(key, tenant)));
    yield hashes.filter((_, i) => own[i] === 1).map((key) => () => redis.hdel(key, tenant));
  },
};

const deletion =
  ({ producer }: Erased, key: string): Trace =>
  () =>
    producer.redis.del(key);

/** Requests and results of executions: those of the subject's tasks, of tasks that are gone, and of skill verification. */
const EXECUTIONS = keyedPlace({
  name: 'queue.executions',
  start: ({ producer, tenant }) => producer.keys.execution(tenant, ''),
  trace: async (erased, key, id) => ((await isOwnExecution(erased, key, id)) ? deletion(erased, key) : null),
});

async function isOwnExecution(erased: Erased, key: string, id: string): Promise<boolean> {
  const { redis, keys } = erased.producer;
  const taskId = taskOfExecution(id);
  if (taskId !== null) return erased.taskIds.has(taskId) || (await redis.exists(keys.task(erased.tenant, taskId))) === 0;
  if ('all' in erased.subject) return true;
  const request = readStored(ExecutionRequest, parsedJson((await redis.hget(key, 'request')) ?? ''));
  const owner = request.data?.owner;
  return owner !== undefined && isOwned(erased, owner.agent, owner.user);
}

/** Consolidation runs whose plan may quote the subject. For an agent, runs of other agents stay. */
const CONSOLIDATIONS = keyedPlace({
  name: 'queue.consolidations',
  start: ({ producer, tenant }) => producer.keys.consolidation(tenant, ''),
  async trace(erased, key, id) {
    const { subject, at, producer, tenant } = erased;
    const { data: record } = ConsolidationRecord.safeParse(parsedJson((await producer.redis.get(key)) ?? ''));
    const removal = async () => {
      if (record) await producer.redis.zrem(producer.keys.consolidations(tenant), listedAs(record));
      await producer.redis.del(...consolidationKeys(producer.keys, tenant, id));
    };
    if (record === undefined) return 'all' in subject ? removal : null;
    const named = namedRecordOf(erased);
    if (named !== null && isOver(record)) {
      const agents = await new ConsolidationStore(producer).agents(tenant, id, { limit: Infinity, after: null });
      if (!agents.some(({ plan }) => plan.some((line) => quotes(line, named)))) return null;
    }
    // A run in progress may have read the record, and writes its plan at its end.
    if (named !== null && !isOver(record)) return record.createdAt < at ? async () => false : null;
    const isOthers = 'agent' in subject && record.agent !== null && record.agent !== subject.agent;
    return record.createdAt >= at || isOthers ? null : removal;
  },
});

/** Whether a line of a plan quotes the record. A line names the episodes that support it. A fact's id is made from its text. */
function quotes(line: string, record: RecordOfTenant): boolean {
  const [, id = ''] = /^\w+\/(.*)$/.exec(record.name) ?? [];
  const [, text] = /, confidence [^:]*: (.*) \[from [^\]]*\]$/s.exec(line) ?? [];
  return line.includes(id) || (text !== undefined && factId(record, text) === id.split('.')[0]);
}

/** Receipts of deletions, with the names of records that were made from the deleted record. They may name erased records. */
export const DELETIONS = keyedPlace({
  name: 'queue.deletions',
  start: ({ producer, tenant }) => producer.keys.erasure(tenant, ''),
  async trace(erased, key) {
    const { data } = StoredErasure.safeParse(parsedJson((await erased.producer.redis.get(key)) ?? ''));
    if (data === undefined || data.receipt.requestedAt >= erased.at) return null;
    const { supported, state } = data.receipt;
    const record = namedRecordOf(erased);
    if (record === null ? supported.length === 0 : !supported.includes(record.name)) return null;
    return state === 'running' ? async () => false : deletion(erased, key);
  },
});

/** Request ids whose record is gone; for a tenant, also ids of methods without records. Ids of erasures hold only digests and stay. */
const REQUESTS = keyedPlace({
  name: 'queue.requests',
  start: ({ producer, tenant }) => producer.keys.request(tenant, '', '').slice(0, -1),
  async trace(erased, key, rest) {
    const { redis, keys } = erased.producer;
    const records = { submit: keys.task, consolidate: keys.consolidation, sandbox: keys.sandbox, wish: keys.wantedSkill };
    const method = rest.split(':', 1)[0] ?? '';
    if (method === 'erase') return null;
    const recordOf = records[method as keyof typeof records] as typeof keys.task | undefined;
    const [, id = ''] = ((await redis.get(key)) ?? '').split(' ');
    const isOwn = recordOf ? (await redis.exists(recordOf(erased.tenant, id))) === 0 : 'all' in erased.subject;
    return isOwn ? deletion(erased, key) : null;
  },
});

const WishOwner = WantedSkill.pick({ agent: true, user: true });

/** Wishes for skills. A wish whose owner can't be read is erased only with its tenant. */
const WANTED_SKILLS = keyedPlace({
  name: 'queue.wanted-skills',
  start: ({ producer, tenant }) => producer.keys.wantedSkill(tenant, ''),
  async trace(erased, key, id) {
    const { producer, tenant, at } = erased;
    const { redis, keys } = producer;
    const [text, createdAt] = await redis.hmget(key, 'wish', 'createdAt');
    if (!text || Number(createdAt) >= at) return null;
    const wish = await unlessDamaged(redis, `wish ${id} of ${tenant}`, async () => WishOwner.parse(JSON.parse(text)));
    if (!('all' in erased.subject) && (!wish || !isOwned(erased, wish.agent, wish.user))) return null;
    const gone = redis.multi().del(key).zrem(keys.wantedSkills(tenant), id).zrem(keys.wantedSkillOutbox, memberOf(tenant, id));
    return () => (wish ? gone.srem(keys.openWishes(tenant, wish.agent), id) : gone).exec();
  },
});

/** Answers of tool calls, which are kept for an hour. */
const TOOL_ANSWERS = keyedPlace({
  name: 'queue.tool-answers',
  start: ({ producer, tenant }) => producer.keys.toolAnswer(tenant, '', '', '').slice(0, -2),
  async trace(erased, key, rest) {
    const record = namedRecordOf(erased);
    if (record === null && !isOwnKey(erased, rest)) return null;
    const text = (await erased.producer.redis.get(key)) ?? '{}';
    // An answer may show a skill, which it names without the version.
    if (record !== null && !text.includes(record.name.replace(/^skills\/(.*)@\d+$/, '$1'))) return null;
    const { at } = JSON.parse(text) as { at?: number };
    return (at ?? 0) < erased.at ? deletion(erased, key) : null;
  },
});

/** The subject's characters in worlds that can be read. For a tenant: all its worlds and the names of expired worlds. */
const WORLDS: ErasurePlace = {
  name: 'queue.worlds',
  async *traces(erased) {
    const { redis, keys } = erased.producer;
    for (const name of await redis.smembers(keys.worlds(erased.tenant))) yield await worldTraces(erased, name);
  },
};

async function worldTraces(erased: Erased, name: string): Promise<readonly Trace[]> {
  const { producer, tenant, subject, at } = erased;
  const { redis, keys } = producer;
  const key = keys.world(tenant, name);
  const text = await redis.get(key);
  const stored = text === null ? null : await unlessDamaged(redis, `world ${name} of ${tenant}`, async () => storedIn(text));
  if ('all' in subject)
    return stored && stored.createdAt >= at ? [] : [() => redis.multi().del(key).srem(keys.worlds(tenant), name).exec()];
  if (text === null || !stored) return [];
  const isOwn = (character: Character) => {
    const [agent = '', user = null] = character.name.split('/');
    return isOwned(erased, agent, user) && (character.since ?? 0) < at;
  };
  const characters = stored.world.characters.filter((one) => !isOwn(one));
  if (characters.length === stored.world.characters.length) return [];
  const rest = JSON.stringify({ ...stored, world: { ...stored.world, characters } });
  return [async () => (await runScript(redis, 'replaceWorld', [key], [text, rest])) === 1];
}

/** Outcomes of moves, which are kept for a day. They name nobody but the mover. */
const WORLD_MOVES = keyedPlace({
  name: 'queue.world-moves',
  start: ({ producer, tenant }) => producer.keys.worldMove(tenant, ''),
  async trace(erased, key, rest) {
    if (!isOwnKey(erased, rest)) return null;
    const { at } = JSON.parse((await erased.producer.redis.get(key)) ?? '{}') as { at?: number };
    return (at ?? 0) < erased.at ? deletion(erased, key) : null;
  },
});

/** Tool sessions: todos, loaded functions and the sandbox. A session that began before the erasure is removed with all its data. */
const TOOL_SESSIONS = keyedPlace({
  name: 'queue.tool-sessions',
  start: ({ producer, tenant }) => producer.keys.toolSession(tenant, '', '', '').slice(0, -2),
  async trace(erased, key, rest) {
    const { at, producer } = erased;
    const { redis } = producer;
    if (!isOwnKey(erased, rest)) return null;
    const [createdAt, sandbox] = await redis.hmget(key, 'createdAt', 'sandbox');
    if (Number(createdAt) >= at) return null;
    return async () => {
      if (sandbox) await eraseSandbox(erased, sandbox, 'the tool session that opened it was erased');
      await redis.del(key);
    };
  },
});

/**
 * Sandbox sessions. A session belongs to its tenant. Once a tool session opens or names it, it belongs to that tool session's agent and
 * user. An open session is closed first. Its controller then finds no record and removes the sandbox.
 */
const SANDBOXES = keyedPlace({
  name: 'queue.sandboxes',
  start: ({ producer, tenant }) => producer.keys.sandbox(tenant, ''),
  async trace(erased, key, id) {
    const isAll = 'all' in erased.subject;
    const [createdAt, owner, since] = await erased.producer.redis.hmget(key, 'createdAt', 'toolOwner', 'toolSince');
    if (!isAll && !(owner && isOwnKey(erased, owner))) return null;
    if (Number(isAll ? createdAt : since) >= erased.at) return null;
    return () => eraseSandbox(erased, id, isAll ? 'its tenant was erased' : 'the data of its tool sessions was erased');
  },
});

async function eraseSandbox({ producer: { redis, keys }, tenant }: Erased, id: string, reason: string): Promise<void> {
  const key = keys.sandbox(tenant, id);
  const [state, epoch, requestKey] = await redis.hmget(key, 'state', 'ownerEpoch', 'requestKey');
  if (state === 'open') await new SandboxSessionStore(redis, keys).end(tenant, id, Number(epoch), 'closed', reason);
  await redis.del(key, ...(requestKey ? [requestKey] : []));
  await redis.zrem(keys.sandboxes(tenant), id);
}

export const BEFORE_TASKS = [OUTBOX, EXECUTIONS, WANTED_SKILLS];
export const AFTER_TASKS = [
  CONSOLIDATIONS,
  TOOL_SESSIONS,
  TOOL_ANSWERS,
  REQUESTS,
  SANDBOXES,
  AGENTS,
  SETTLING,
  SPEND,
  LINE,
  WORLDS,
  WORLD_MOVES,
];
