import type { Scope } from '@etude/contracts/memory';
import type { ReadScope } from '@etude/domain/ports/memory';
import { episodeOf, factOf, NEW_YEAR, skillOf, skillUseOf, transitionOf } from '@etude/domain/testing/memory-records';
import { storeAt } from '@etude/domain/testing/skill-lives';
import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { Memory } from '../src/memory.js';

export interface MemoryUnderTest {
  readonly memory: Memory;
  readonly close: () => Promise<void>;
}

/** Alike on purpose: one is the beginning of another, and agents are called like tenants. */
const TENANTS = ['acme', 'acm', 'acme2'];
const AGENTS = ['coder', 'acme'];
const USERS = [null, 'ann', 'an'];
const QUERY = 'even numbers of a list, refund, and whose it is';
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
  skill: ({ procedural }, scope, id, mark) =>
    storeAt(procedural, skillOf({ scope, status: 'active', code: `print('${id} ${mark}')`, description: `even numbers ${mark}` })),
  procedure: ({ procedural }, scope, id, mark) => procedural.storeProcedure(`p ${id} ${mark}`, scope, 'refund', `refund as ${mark}`),
  use: ({ procedural }, scope, id, mark) =>
    procedural.recordUse(`use ${id} ${mark}`, skillUseOf({ scope, cue: 'even', fingerprint: 'f1' })).catch(onlyNotFound),
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
  bySkill: ({ episodic }, scope) => episodic.bySkill(scope, 'sum_even', 50),
  episode: ({ episodic }, scope, id) => episodic.get(scope, id),
  transitions: ({ episodic }, scope) => episodic.transitions(scope, 'r'),
  facts: ({ semantic }, scope) => semantic.list(scope, 50),
  fact: ({ semantic }, scope, id) => semantic.get(scope, id),
  history: ({ semantic }, scope, id) => semantic.history(scope, id),
  skill: ({ procedural }, scope) => procedural.get(scope, 'sum_even'),
  skills: ({ procedural }, scope) => procedural.list(scope, { limit: 50 }),
  solved: ({ procedural }, scope) => procedural.byFingerprint(scope, 'f1'),
  recall: (memory, scope) => memory.recall(scope, { context: QUERY, facts: 50, experiences: 50, procedures: 50, tokensMax: 100_000 }),
  record: async (memory, scope, id) =>
    Promise.all((['episodic', 'semantic', 'procedural'] as const).map((layer) => memory.get(scope, layer, id))),
} satisfies Record<string, (memory: Memory, scope: ReadScope, id: string) => Promise<unknown>>;

const OWNER = { tenant: fc.constantFrom(...TENANTS), agent: fc.constantFrom(...AGENTS), user: fc.constantFrom(...USERS) };
const WRITE = fc.record({ ...OWNER, write: fc.constantFrom(...keysOf(WRITERS)), number: fc.integer({ min: 0, max: 2 }) });
const READ = fc.record({
  ...OWNER,
  agent: fc.constantFrom(null, ...AGENTS),
  read: fc.constantFrom(...keysOf(READERS)),
  number: fc.integer({ min: 0, max: 2 }),
});
type Step = { tenant: string; agent: string | null; user: string | null; number: number } & (
  | { write: keyof typeof WRITERS; agent: string }
  | { read: keyof typeof READERS }
);

/** Random operations of tenants, agents and users with names alike: whatever is answered says whose it is, and nothing is of others. */
export function layersIsolation(name: string, open: () => Promise<MemoryUnderTest>, { runs }: { readonly runs: number }): void {
  describe(`the layers over ${name}`, () => {
    const counts = { operations: 0, marks: 0 };
    afterAll(() => console.log(`isolation over ${name}: ${counts.operations} operations, ${counts.marks} owners' marks in answers`));

    it(
      'never show anything of another tenant, agent or user',
      async () => {
        const steps = fc.array(fc.oneof(WRITE, READ), { minLength: 80, maxLength: 160, size: 'max' }) as fc.Arbitrary<Step[]>;
        const property = fc.asyncProperty(steps, async (given) => isolates(await open(), given, counts));
        await expect(fc.assert(property, { numRuns: runs })).resolves.toBeUndefined();
        expect(counts.marks).toBeGreaterThan(runs);
      },
      TIMEOUT_MS,
    );
  });
}

async function isolates({ memory, close }: MemoryUnderTest, steps: readonly Step[], counts: { operations: number; marks: number }) {
  try {
    for (const step of steps) {
      counts.operations += 1;
      const marks = await marksAnswered(memory, step);
      counts.marks += marks.length;
      expect(marks.filter((mark) => !mayBeSeen(mark, step))).toEqual([]);
    }
  } finally {
    await close();
  }
}

/** Whose records a reading step was shown; a writing step shows none. */
async function marksAnswered(memory: Memory, step: Step): Promise<readonly string[]> {
  const { tenant, user } = step;
  const id = `${step.number}`;
  if (!('write' in step)) {
    const answer = await READERS[step.read](memory, { tenant, agent: step.agent, user }, id);
    return JSON.stringify(answer).match(/owner_\w+/g) ?? [];
  }
  const scope = { tenant, agent: step.agent, user };
  await WRITERS[step.write](memory, scope, id, markOf(scope));
  return [];
}

function markOf({ tenant, agent, user }: Scope): string {
  return `owner_${tenant}_${agent}_${user ?? 'nobody'}`;
}

function mayBeSeen(mark: string, scope: ReadScope): boolean {
  const [, tenant, agent, user] = mark.split('_');
  const { user: reader = null } = scope;
  return (
    tenant === scope.tenant && (scope.agent === null || agent === scope.agent) && (reader === null || user === 'nobody' || user === reader)
  );
}

function keysOf<T extends object>(table: T): Array<keyof T> {
  return Object.keys(table) as Array<keyof T>;
}

function onlyNotFound(error: unknown): void {
  if ((error as { code?: string }).code !== 'NOT_FOUND') throw error;
}

export const ISOLATION_CLOCK = { now: () => NEW_YEAR + 400 * 86_400_000 };
