import type { Scope } from '@etude/contracts/memory';
import type { ReadScope } from '@etude/domain/ports/memory';
import { episodeOf, factOf, NEW_YEAR, skillOf, skillUseOf, transitionOf } from '@etude/domain/testing/memory-records';
import { storeAt } from '@etude/domain/testing/skill-lives';
import { findSkill, searchSkills, type SkillReader } from '@etude/domain/skills/life/find-skill';
import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { Memory } from '../src/memory.js';

export interface MemoryUnderTest {
  readonly memory: Memory;
  readonly close: () => Promise<void>;
}

/** Similar names: one tenant is a prefix of another, and an agent has the name of a tenant. */
const TENANTS = ['acme', 'acm', '@global'];
const AGENTS = ['coder', 'acme', '@user', '@tenant'];
const USERS = [null, 'ann', 'an'];
const NAMES = ['sum_even', 'sum_odd'] as const;
const QUERY = 'even numbers of a list, refund, and whose it is';
const RECALL = { context: QUERY, facts: 50, experiences: 50, procedures: 50, tokensMax: 100_000 };
/** The mark of global skills, which every tenant may read. */
const EVERYBODYS = 'owner:@global:@tenant:nobody';
const TIMEOUT_MS = 300_000;

const WRITERS = {
  transition: ({ episodic }, scope, id, mark) =>
    episodic.storeTransition(transitionOf({ id, scope, rolloutId: 'r', prompt: `even numbers ${mark}` })),
  episode: ({ episodic }, scope, id, mark) =>
    episodic.storeEpisode(episodeOf({ id, scope, summary: `even ${mark}`, reflection: `numbers ${mark}`, skillsUsed: ['sum_even@1'] })),
  fact: ({ semantic }, scope, id, mark) =>
    semantic.store(`f ${id} ${mark}`, factOf({ id: `${id} ${mark}`, scope, text: `The refund of ${mark} is even.`, category: mark })),
  unit: ({ semantic }, scope, id, mark) =>
    semantic.applyFacts(scope.tenant, `u ${id} ${mark}`, [factOf({ id: `${id} ${mark}`, scope, text: `List ${id} is of ${mark}.` })]),
  conversation: ({ conversations }, scope, id, mark) => {
    const messages = [mark, `again ${mark}`].map((text) => ({ role: 'user', name: '', text: `The even refund of ${text}`, at: null }));
    return conversations.add({ scope, name: `chat ${id}`, title: mark, messages, writeId: `c ${id} ${mark}`, first: null, at: NEW_YEAR });
  },
  skill: ({ procedural }, scope, id, mark) =>
    storeAt(
      procedural,
      skillOf({ name: nameOf(id), scope, status: 'active', code: `print('${id} ${mark}')`, description: `even ${mark}` }),
    ),
  shows: ({ shows }, scope, id, mark) => {
    const { tenant: _tenant, ...owner } = scope;
    const items = [{ layer: 'semantic', kind: 'fact', id: `${id} ${mark}`, owner, shown: true }] as const;
    return shows.count(`s ${id} ${mark}`, { kind: 'shows', scope, shows: [...items], right: true, tokens: 1, at: NEW_YEAR });
  },
  procedure: ({ procedural }, scope, id, mark) => procedural.storeProcedure(`p ${id} ${mark}`, scope, 'refund', `refund as ${mark}`),
  use: ({ procedural }, scope, id, mark) =>
    procedural.applyUse(`use ${id} ${mark}`, skillUseOf({ scope, cue: 'even', fingerprint: 'f1' })).catch(onlyNotFound),
  write: ({ appliedWrites }, scope, id, mark) =>
    appliedWrites.apply(scope.tenant, `w ${id}`, {
      kind: 'episode',
      episode: episodeOf({ id: `w${id}`, scope, prompt: mark, summary: mark }),
    }),
  archive: ({ upkeep }, { tenant }) => upkeep.archive({ tenant }, { scoreMax: 1, olderThanDays: 0 }, { dryRun: false }),
  restore: ({ upkeep }, { tenant, agent }) => upkeep.restore({ tenant, agent }),
} satisfies Record<string, (memory: Memory, scope: Scope, id: string, mark: string) => Promise<unknown>>;

const READERS = {
  episodicSearch: ({ episodic }, scope) => episodic.search(scope, { text: QUERY, limit: 50 }),
  archivedSearch: ({ episodic }, scope) => episodic.search(scope, { text: QUERY, limit: 50, archived: true, explain: true }),
  semanticSearch: ({ semantic }, scope) => semantic.search(scope, { text: QUERY, limit: 50 }),
  proceduralSearch: ({ procedural }, scope) => procedural.search(scope, { text: QUERY, limit: 50, worthMin: 0.2 }),
  recent: ({ episodic }, scope) => episodic.recent(scope, 0, 50),
  every: ({ episodic }, scope) => Array.fromAsync(episodic.every(scope, 0)),
  bySkill: ({ episodic }, scope) => episodic.bySkill(scope, 'sum_even', 50),
  episode: ({ episodic }, scope, id) => episodic.get(scope, id),
  transitions: ({ episodic }, scope) => episodic.transitions(scope, 'r'),
  facts: ({ semantic }, scope) => semantic.list(scope, 50),
  fact: ({ semantic }, scope, id) => semantic.get(scope, id),
  conversations: ({ conversations }, scope) => conversations.list(scope, { limit: 50 }),
  history: ({ semantic }, scope, id) => semantic.history(scope, id),
  shows: ({ shows }, scope) => Array.fromAsync(shows.list(scope)),
  skill: ({ procedural }, scope) => procedural.get(scope, 'sum_even'),
  skills: ({ procedural }, scope) => Array.fromAsync(procedural.every(scope)),
  solved: ({ procedural }, scope) => procedural.byFingerprint(scope, 'f1'),
  recall: async (memory, scope) => {
    const { facts, experiences, procedures } = await memory.recall(scope, RECALL);
    const ofAnyAgent = scope.agent === null ? procedures.filter(({ text }) => !text.includes(EVERYBODYS)) : [];
    return { facts, experiences, ofAnyAgent };
  },
  record: async (memory, scope, id) => Promise.all((['episodic', 'semantic'] as const).map((layer) => memory.get(scope, layer, id))),
} satisfies Record<string, (memory: Memory, scope: ReadScope, id: string) => Promise<unknown>>;

/** Look-ups of skills by a person or an agent. They cover several owners and two tenants. */
const SKILL_READERS = {
  found: ({ procedural }, reader, id) => findSkill(procedural, reader, nameOf(id)),
  version: ({ procedural }, reader, id) => findSkill(procedural, reader, nameOf(id), { version: 1 }),
  foundAnyhow: ({ procedural }, reader, id) => findSkill(procedural, reader, nameOf(id), { status: 'any' }),
  recalled: async (memory, reader) => (await memory.recall(reader, RECALL)).procedures,
  searched: ({ procedural }, reader) => searchSkills(procedural, reader, { text: QUERY, limit: 50, explain: true }),
} satisfies Record<string, (memory: Memory, reader: SkillReader, id: string) => Promise<unknown>>;

const OWNER = { tenant: fc.constantFrom(...TENANTS), agent: fc.constantFrom(...AGENTS), user: fc.constantFrom(...USERS) };
const WRITE = fc.record({ ...OWNER, write: fc.constantFrom(...keysOf(WRITERS)), number: fc.integer({ min: 0, max: 2 }) });
const READ = fc.record({
  ...OWNER,
  agent: fc.constantFrom(null, ...AGENTS),
  read: fc.constantFrom(...keysOf(READERS)),
  number: fc.integer({ min: 0, max: 2 }),
});
/** A view of several agents always has a user. */
const READ_SEVERAL = fc.record({
  ...OWNER,
  user: fc.constantFrom('ann', 'an', '@nobody'),
  also: fc.uniqueArray(fc.constantFrom(...AGENTS, 'unknown'), { minLength: 1, maxLength: 3 }),
  read: fc.constantFrom(...keysOf(READERS)),
  number: fc.integer({ min: 0, max: 2 }),
});
const READ_SKILL = fc.record({
  ...OWNER,
  agent: fc.constantFrom('coder', 'acme'),
  readSkill: fc.constantFrom(...keysOf(SKILL_READERS)),
  number: fc.integer({ min: 0, max: 2 }),
});
type Step = { tenant: string; agent: string | null; user: string | null; number: number; also?: readonly string[] } & (
  | { write: keyof typeof WRITERS; agent: string }
  | { read: keyof typeof READERS }
  | { readSkill: keyof typeof SKILL_READERS; agent: string }
);

/** Runs random operations of tenants, agents and users with similar names. Each result names its owner, who must be visible to the reader. */
export function layersIsolation(name: string, open: () => Promise<MemoryUnderTest>, { runs }: { readonly runs: number }): void {
  describe(`the layers over ${name}`, () => {
    const counts: Counts = { operations: 0, marks: 0, shared: 0 };
    afterAll(() =>
      console.log(
        `isolation over ${name}: ${counts.operations} operations, ${counts.marks} owners' marks in answers, ${counts.shared} of them of owners read together`,
      ),
    );

    it(
      'never return a record of another tenant, agent or user',
      async () => {
        const steps = fc.array(fc.oneof({ weight: 4, arbitrary: WRITE }, { weight: 2, arbitrary: READ }, READ_SEVERAL, READ_SKILL), {
          minLength: 80,
          maxLength: 160,
          size: 'max',
        }) as fc.Arbitrary<Step[]>;
        const property = fc.asyncProperty(steps, async (given) => isolates(await open(), given, counts));
        await expect(fc.assert(property, { numRuns: runs })).resolves.toBeUndefined();
        expect(counts.marks).toBeGreaterThan(runs);
        expect(counts.shared).toBeGreaterThan(runs);
      },
      TIMEOUT_MS,
    );
  });
}

interface Counts {
  operations: number;
  marks: number;
  shared: number;
}

async function isolates({ memory, close }: MemoryUnderTest, steps: readonly Step[], counts: Counts) {
  try {
    for (const step of steps) {
      counts.operations += 1;
      const marks = await marksAnswered(memory, step);
      counts.marks += marks.length;
      if ('readSkill' in step || step.also !== undefined) counts.shared += marks.length;
      const isTheirs = (mark: string) => ('readSkill' in step ? mayBeRead(mark, step) : mayBeSeen(mark, step));
      expect(marks.filter((mark) => !isTheirs(mark))).toEqual([]);
    }
  } finally {
    await close();
  }
}

/** The owners whose records a reading step returned. A writing step returns none. */
async function marksAnswered(memory: Memory, step: Step): Promise<readonly string[]> {
  const { tenant, user, also } = step;
  const id = `${step.number}`;
  if ('readSkill' in step) return marksIn(await SKILL_READERS[step.readSkill](memory, { tenant, agent: step.agent, user }, id));
  if ('read' in step)
    return marksIn(await READERS[step.read](memory, { tenant, agent: step.agent, user, ...(also === undefined ? {} : { also }) }, id));
  const scope = { tenant, agent: step.agent, user };
  await WRITERS[step.write](memory, scope, id, markOf(scope));
  return [];
}

function marksIn(answer: unknown): readonly string[] {
  return JSON.stringify(answer).match(/owner:[\w@]+:[\w@]+:\w+/g) ?? [];
}

function markOf({ tenant, agent, user }: Scope): string {
  return `owner:${tenant}:${agent}:${user ?? 'nobody'}`;
}

function mayBeSeen(mark: string, { tenant, agent, user = null, also = [] }: ReadScope): boolean {
  const [, ofTenant, ofAgent = '', ofUser] = mark.split(':');
  const isRead = agent === null || ofAgent === agent || also.includes(ofAgent);
  return ofTenant === tenant && isRead && (user === null || ofUser === 'nobody' || ofUser === user);
}

/** Whether the skill belongs to the agent, the user, the tenant or everybody. */
function mayBeRead(mark: string, { tenant, agent, user }: SkillReader): boolean {
  const readable = [markOf({ tenant, agent, user: null }), markOf({ tenant, agent: '@tenant', user: null })];
  if (user !== null) readable.push(markOf({ tenant, agent, user }), markOf({ tenant, agent: '@user', user }));
  return [...readable, EVERYBODYS].includes(mark);
}

function nameOf(id: string): string {
  return NAMES[Number(id) % NAMES.length] ?? NAMES[0];
}

function keysOf<T extends object>(table: T): Array<keyof T> {
  return Object.keys(table) as Array<keyof T>;
}

function onlyNotFound(error: unknown): void {
  if ((error as { code?: string }).code !== 'NOT_FOUND') throw error;
}

export const ISOLATION_CLOCK = { now: () => NEW_YEAR + 400 * 86_400_000 };
