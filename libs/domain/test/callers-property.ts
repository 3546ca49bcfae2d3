import type { Skill } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { archiveSkill, deprecateSkill, rejectSkill, restoreSkill, rollbackSkill, settleVerified } from '../src/skills/life/decisions.js';
import { IN_USE } from '../src/skills/life/skill-life.js';
import { dependencyOn } from '../src/skills/proof/bundle-code.js';
import { neededSkills } from '../src/skills/life/call-graph.js';
import type { DecisionsProperty } from './decisions-property.js';
import { SCOPE, skillOf } from './memory-records.js';
import { storeAt } from './skill-lives.js';

/** Each calls those named behind it. */
const SKILLS = {
  base: { status: 'active', calls: [] },
  between: { status: 'deprecated', calls: ['base'] },
  top: { status: 'verified', calls: ['between'] },
  beside: { status: 'verified', calls: ['base'] },
  once: { status: 'deprecated', calls: ['base'] },
} as const;
type Name = keyof typeof SKILLS;
const NAMES = Object.keys(SKILLS) as Name[];

const DECISION = fc.record({
  what: fc.constantFrom('settle', 'settle', 'archive', 'archive', 'restore', 'rollback', 'deprecate', 'reject'),
  name: fc.constantFrom<Name>('base', 'base', ...NAMES),
  review: fc.boolean(),
  by: fc.nat(1),
});
type Decided = typeof DECISION extends fc.Arbitrary<infer T> ? T : never;

/** Whatever is decided about skills that call each other: what is in use, or waits for review, can run behind it. */
export const CALLERS_CAN_RUN: DecisionsProperty<Decided> = {
  turns: fc.array(fc.array(DECISION, { minLength: 2, maxLength: 5 }), { minLength: 2, maxLength: 8 }),
  example: [[{ what: 'settle', name: 'beside', review: false, by: 0 }]],
  store: storeSkills,
  skillsIn: versionsOf,
  decide,
  look: async (registry, turn) => {
    const callers = (await versionsOf(registry)).filter(({ status, dependencies = [] }) => IN_USE.has(status) && dependencies.length > 0);
    for (const skill of callers) await requireRunnable(registry, skill, turn);
    return callers.length;
  },
};

async function storeSkills(registry: ProceduralMemory): Promise<void> {
  const stored = new Map<Name, Skill>();
  for (const name of NAMES) {
    const { status, calls } = SKILLS[name];
    const dependencies = calls.flatMap((called) => stored.get(called) ?? []).map(dependencyOn);
    stored.set(name, await storeAt(registry, skillOf({ name, status, dependencies })));
  }
}

async function versionsOf(registry: ProceduralMemory): Promise<readonly Skill[]> {
  return (await Promise.all(NAMES.map((name) => registry.versions(SCOPE, name)))).flat();
}

async function decide(registry: ProceduralMemory, decided: Decided, skills: readonly Skill[], at: number): Promise<unknown> {
  const skill = skills.find(({ name }) => name === decided.name);
  if (skill === undefined) return null;
  const decision = { by: 'ann', reason: '', at };
  const approval = { approvalMode: decided.review ? 'review' : 'automatic', skillRegistrationConfidenceThreshold: 0.5 } as const;
  switch (decided.what) {
    case 'settle':
      return settleVerified(registry, skill, approval, at);
    case 'archive':
      return archiveSkill(registry, [skill], decision);
    case 'restore':
      return restoreSkill(registry, [skill], decision);
    case 'rollback':
      return rollbackSkill(registry, skill, { ...decision, toVersion: skill.version });
    case 'deprecate':
      return deprecateSkill(registry, skill, decision);
    default:
      return rejectSkill(registry, skill, decision);
  }
}

async function requireRunnable(registry: ProceduralMemory, skill: Skill, turn: readonly Decided[]): Promise<void> {
  await neededSkills(registry, skill).catch((error: unknown) => {
    throw new Error(`${skill.status} ${skill.name} can't run, by ${JSON.stringify(turn)}`, { cause: error });
  });
}
