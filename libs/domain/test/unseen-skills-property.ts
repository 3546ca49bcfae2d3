import { errorCode } from '@etude/contracts/errors';
import type { Scope, Skill } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import { isDeepStrictEqual } from 'node:util';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { findSkill, ownersFor, searchSkills, type SkillReader, viewOf } from '../src/skills/life/find-skill.js';
import { registerSkill } from '../src/skills/life/register-skill.js';
import { pinnedTo } from '../src/skills/proof/bundle-code.js';
import { activeDependents } from '../src/skills/proof/keep-what-worked.js';
import { NEW_YEAR, skillOf, skillUseOf } from './memory-records.js';
import { decideOn, storeAt } from './skill-lives.js';

const TENANT = 'acme';
const NAMES = ['one', 'two', 'three'] as const;
const NAMES_MAX = 2;
/** Names of two users. They are similar, so that a wrong key could mix up the users. */
const [SEEN, UNSEEN] = ['ann', 'an'] as const;

const CALL = fc.record({
  what: fc.constantFrom(
    'register',
    'edit',
    'settle',
    'settle',
    'calling',
    'reject',
    'deprecate',
    'archive',
    'restore',
    'rollback',
    'use',
    'offer',
    'promote',
  ),
  agent: fc.constantFrom('coder', 'coder', '@user'),
  name: fc.constantFrom(...NAMES),
  letter: fc.constantFrom('a', 'b', 'c'),
  place: fc.nat(2),
  version: fc.integer({ min: 1, max: 3 }),
});
type Call = typeof CALL extends fc.Arbitrary<infer T> ? T : never;
type Step = Call & { readonly who: 'seen' | 'nobody' | 'unseen' };

/** Calls of one user, of no user and of another user on skills of one agent. */
export const STEPS: fc.Arbitrary<readonly Step[]> = fc
  .array(fc.record({ call: CALL, who: fc.constantFrom('seen', 'seen', 'nobody', 'unseen', 'unseen') }), {
    minLength: 12,
    maxLength: 40,
    size: 'max',
  })
  .map((steps) => steps.map(({ call, who }) => ({ ...call, who }) as const));

/**
 * Makes the same calls in two stores, but leaves out the other user's calls in the second store. One user, and callers without a user, must get equal
 * answers and refusals from both stores.
 *
 * Scores are not compared, because they depend on words of the whole tenant. Marks are not compared, because marked code marks every user's copies.
 *
 * @returns how many answers were compared, and how many calls of the other user took place
 */
export async function seesNothingOfOthers(
  whole: ProceduralMemory,
  without: ProceduralMemory,
  steps: readonly Step[],
): Promise<{ readonly answers: number; readonly unseen: number }> {
  const counted = { answers: 0, unseen: 0 };
  for (const [i, step] of steps.entries()) {
    const at = NEW_YEAR + i;
    const answered = await answerOf(() => act(whole, step, at));
    if (step.who === 'unseen') {
      counted.unseen += typeof answered === 'string' ? 0 : 1;
      continue;
    }
    requireSame(step, answered, await answerOf(() => act(without, step, at)));
    requireSame(step, await sightOf(whole, step), await sightOf(without, step));
    counted.answers += 1;
  }
  return counted;
}

function requireSame(step: Step, there: unknown, alone: unknown): void {
  if (isDeepStrictEqual(there, alone)) return;
  throw new Error(
    `the answer to ${JSON.stringify(step)} depends on another user's skills: with them ${JSON.stringify(there)}, without them ${JSON.stringify(alone)}`,
  );
}

/** The answer of a call, or the whole text of its refusal. */
async function answerOf(asked: () => Promise<unknown>): Promise<unknown> {
  try {
    return (await asked()) ?? null;
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    const { message, details } = error as { message: string; details?: unknown };
    return `${errorCode(error)} ${message} ${JSON.stringify(details)}`;
  }
}

const USERS = { seen: SEEN, unseen: UNSEEN, nobody: null } as const;
const readerOf = ({ who }: Step): SkillReader => ({ tenant: TENANT, agent: 'coder', user: USERS[who] });
const scopeOf = (step: Step): Scope => ({ ...readerOf(step), agent: step.who === 'nobody' ? 'coder' : step.agent });

async function act(registry: ProceduralMemory, step: Step, at: number): Promise<unknown> {
  const { what, name, letter, place, version } = step;
  const scope = scopeOf(step);
  const told = skillOf({
    name,
    scope,
    code: `def total(xs): return '${letter}'`,
    description: `even numbers of ${name}`,
    createdAt: at,
    updatedAt: at,
  });
  const register = (skill: Skill, options: object) =>
    registerSkill(skill, { by: 'ann', ...options }, { procedural: registry, settings: { enabled: true, maxSkills: NAMES_MAX } });
  if (what === 'register') return register(told, {});
  if (what === 'edit') return register(told, { baseVersion: version });
  if (what === 'settle') return storeAt(registry, { ...told, status: version === 1 ? 'pending_review' : 'active' }, { at });
  if (what === 'calling') {
    return storeAt(registry, { ...(await pinnedTo([NAMES[place]!], told, registry)), status: 'active' }, { at });
  }
  // Everybody sees a promoted skill.
  if (what === 'promote' && step.who === 'unseen') return null;
  // A refusal to archive a shared skill names the callers of every user, because only reviewers archive.
  if (what === 'archive' && step.who === 'nobody') return null;
  const versions = await registry.versions(scope, name);
  const skill = versions[place % Math.max(1, versions.length)];
  return skill === undefined ? null : decide(registry, skill, step, at);
}

function decide(registry: ProceduralMemory, skill: Skill, step: Step, at: number): Promise<unknown> {
  const { what, name, place, version } = step;
  const { scope } = skill;
  if (what === 'offer') return registry.countOffers([{ ...scope, name, version: skill.version }]);
  if (what === 'use') {
    const owner = { tenant: TENANT, agent: scope.agent, ...(scope.user === null ? {} : { user: scope.user }) };
    return registry.applyUse(`use ${at}`, skillUseOf({ scope: readerOf(step), owner, name, version: skill.version, at }));
  }
  const replacedBy = version === 1 ? NAMES[place] : undefined;
  return decideOn(registry, skill, { what, by: 'ann', reason: '', at, replacedBy, toVersion: version === 3 ? undefined : version });
}

/** All answers about skills that a reader can get. */
async function sightOf(registry: ProceduralMemory, step: Step): Promise<unknown> {
  const reader = readerOf(step);
  const owners = ownersFor(reader);
  const { name, version } = step;
  return {
    found: await findSkill(registry, reader, name),
    version: await findSkill(registry, reader, name, { version }),
    anyhow: await findSkill(registry, reader, name, { status: 'any' }),
    searched: (await searchSkills(registry, reader, { text: 'even numbers', limit: 50 })).map(({ skill }) => skill.name).toSorted(),
    versions: await Promise.all(owners.map((owner) => registry.versions(owner, name))),
    counts: await Promise.all(owners.map((owner) => registry.countNames(owner))),
    got: await Promise.all(owners.map((owner) => registry.get(viewOf(owner, reader.user), name))),
    listed: await Promise.all(owners.map((owner) => Array.fromAsync(registry.every(viewOf(owner, reader.user))))),
    solved: await registry.byFingerprint(viewOf(reader, reader.user), 'f1'),
    callers: await callersOf(registry, reader, name),
  };
}

/** The versions whose tests a new version must pass, as verification names them. */
async function callersOf(registry: ProceduralMemory, reader: SkillReader, name: string): Promise<readonly string[]> {
  const skill = await findSkill(registry, reader, name);
  if (skill === null) return [];
  const callers = await activeDependents(skill, registry);
  return callers
    .filter(({ scope }) => scope.user === null || scope.user === reader.user)
    .map((caller) => `${caller.name}@${caller.version}`)
    .toSorted();
}
