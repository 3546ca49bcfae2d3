import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { settleVerified } from '../src/skills/life/decisions.js';
import { neededSkills } from '../src/skills/life/call-graph.js';
import { IN_USE } from '../src/skills/life/skill-life.js';
import { dependencyOn } from '../src/skills/proof/bundle-code.js';
import { NEW_YEAR, SCOPE, skillOf } from './memory-records.js';
import { decideOn, storeAt } from './skill-lives.js';

/** Versions in the order in which they are stored; each calls the newest version of the skills that it names. */
const VERSIONS = [
  { name: 'base', status: 'active', calls: [] },
  { name: 'base', status: 'active', calls: [] },
  { name: 'between', status: 'deprecated', calls: ['base'] },
  { name: 'top', status: 'verified', calls: ['between'] },
  { name: 'beside', status: 'verified', calls: ['base'] },
  { name: 'once', status: 'deprecated', calls: ['base'] },
  { name: 'base', status: 'active', calls: [] },
  { name: 'base', status: 'pending_review', calls: [] },
  { name: 'base', status: 'verified', calls: [] },
] as const;
type Name = (typeof VERSIONS)[number]['name'];
const NAMES: readonly Name[] = ['base', 'between', 'top', 'beside', 'once'];

const DECISION = fc.record({
  what: fc.constantFrom('settle', 'settle', 'archive', 'archive', 'approve', 'restore', 'rollback', 'deprecate', 'reject'),
  name: fc.constantFrom<Name>('base', 'base', ...NAMES),
  version: fc.integer({ min: 1, max: 5 }),
  review: fc.boolean(),
  /** Which of the registries. */
  by: fc.nat(1),
});
type Decided = typeof DECISION extends fc.Arbitrary<infer T> ? T : never;

/** Decisions of one turn are made at the same time. */
const TURNS = fc.array(fc.array(DECISION, { minLength: 2, maxLength: 5 }), { minLength: 2, maxLength: 8 });
/** The first example leaves a caller in use, because a few drawn turns may leave none to look at. */
const EXAMPLE: readonly (readonly Decided[])[] = [[{ what: 'settle', name: 'beside', version: 1, review: false, by: 0 }]];

/** Registries over one store. */
export interface OpenRegistries {
  readonly registries: readonly [ProceduralMemory, ...ProceduralMemory[]];
  readonly close?: () => Promise<void>;
}

/**
 * Makes decisions about skills that call each other at the same time. After each turn at most one version of a skill is active, and each
 * skill in use or in review can run. Each run opens registries of its own.
 *
 * @returns how many callers in use were looked at
 */
export async function decideAtOnce(
  open: () => OpenRegistries | Promise<OpenRegistries>,
  { numRuns, turnsMax = Infinity }: { readonly numRuns: number; readonly turnsMax?: number },
): Promise<number> {
  let inUse = 0;
  const run = async (turns: readonly (readonly Decided[])[]) => {
    const { registries, close } = await open();
    const [first] = registries;
    try {
      await storeVersions(first);
      for (const [i, turn] of turns.slice(0, turnsMax).entries()) {
        const skills = await everyVersion(first);
        const decisions = turn.map((decided, j) =>
          decide(registries[decided.by % registries.length] ?? first, decided, skills, NEW_YEAR + 100 + i * 10 + j),
        );
        const outcomes = await Promise.allSettled(decisions);
        for (const outcome of outcomes) if (outcome.status === 'rejected') requireRefusal(outcome.reason);
        inUse += await look(first, turn);
      }
    } finally {
      await close?.();
    }
  };
  await fc.assert(fc.asyncProperty(TURNS, run), { numRuns, examples: [[EXAMPLE]] });
  return inUse;
}

async function storeVersions(registry: ProceduralMemory): Promise<void> {
  const newest = new Map<Name, Skill>();
  for (const [i, { name, status, calls }] of VERSIONS.entries()) {
    const dependencies = calls.flatMap((called) => newest.get(called) ?? []).map(dependencyOn);
    const skill = skillOf({ name, status, code: `print('${i}')`, ...(dependencies.length === 0 ? {} : { dependencies }) });
    newest.set(name, await storeAt(registry, skill, { at: NEW_YEAR + i }));
  }
}

async function everyVersion(registry: ProceduralMemory): Promise<readonly Skill[]> {
  return (await Promise.all(NAMES.map((name) => registry.versions(SCOPE, name)))).flat();
}

async function decide(registry: ProceduralMemory, decided: Decided, skills: readonly Skill[], at: number): Promise<unknown> {
  const versions = skills.filter(({ name }) => name === decided.name);
  const skill = versions.find(({ version }) => version === decided.version) ?? versions[0];
  if (skill === undefined) return null;
  const { what, review } = decided;
  if (what !== 'settle') return decideOn(registry, skill, { what, by: 'ann', reason: '', at, toVersion: skill.version });
  const settings = { approvalMode: review ? 'review' : 'automatic', skillRegistrationConfidenceThreshold: 0.5 } as const;
  return settleVerified(registry, skill, settings, at);
}

async function look(registry: ProceduralMemory, turn: readonly Decided[]): Promise<number> {
  const inUse = (await everyVersion(registry)).filter(({ status }) => IN_USE.has(status));
  const active = inUse.filter(({ status }) => status === 'active').map(({ name }) => name);
  if (new Set(active).size < active.length) throw new Error(`several versions of one skill are active, by ${JSON.stringify(turn)}`);
  const callers = inUse.filter(({ dependencies = [] }) => dependencies.length > 0);
  for (const skill of callers)
    await neededSkills(registry, skill).catch((error: unknown) => {
      throw new Error(`${skill.status} ${skill.name} can't run, by ${JSON.stringify(turn)}`, { cause: error });
    });
  return callers.length;
}

/** A decision is refused only because of another decision. */
function requireRefusal(error: unknown): void {
  if (!['ABORTED', 'FAILED_PRECONDITION'].includes(errorCode(error))) throw error;
}
