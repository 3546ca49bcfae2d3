import type { Skill } from '@etude/contracts/memory';
import type { SkillDependency, SkillProof } from '@etude/contracts/skill-proof';
import type { SkillMove } from '../src/ports/skill-registry.js';
import { NEW_YEAR, skillOf } from './memory-records.js';
import type { HygieneDeps } from '../src/skills/life/prune.js';
import { versionKey } from '../src/skills/life/call-graph.js';
import { skillDigest } from '../src/skills/content-digest.js';
import { movedSkill } from '../src/skills/life/skill-life.js';

export const DAY_MS = 86_400_000;

/** An active skill with the proof for its content, for tests; made active on New Year's Day. */
export function provenSkill(name: string, changes: Partial<Skill> = {}): Skill {
  const skill = skillOf({
    name,
    code: `def ${name}(): ...`,
    entryPoint: name,
    status: 'active',
    history: [{ at: NEW_YEAR, by: 'verification', from: 'verified', to: 'active', reason: '' }],
    ...changes,
  });
  const digest = skillDigest(skill);
  const proof: SkillProof = {
    v: 1,
    digest,
    verifiedAt: NEW_YEAR,
    testsPassed: 1,
    heldOutPassed: 0,
    mutantsMade: 1,
    mutantsNoticed: 1,
    mutantsSurvived: [],
    findings: [],
    kept: [],
    alike: [],
    confidence: 1,
    keyId: 'test',
    signature: '',
  };
  return { ...skill, digest, proof };
}

/** How a skill names one that it calls. */
export function calls({ name, scope, version, digest }: Skill): SkillDependency {
  return { name, tenant: scope.tenant, agent: scope.agent, user: scope.user, version, digest };
}

/** Skills in a list that move by the table. */
export class Shelf {
  readonly moves: SkillMove[] = [];
  readonly #skills: Skill[];

  constructor(...skills: Skill[]) {
    this.#skills = skills;
  }

  readonly procedural: HygieneDeps['procedural'] = {
    list: async ({ tenant, agent }, { limit, afterName, afterAgent, afterUser }) => {
      const newest = new Map(
        this.#of(tenant)
          .toSorted((a, b) => a.version - b.version)
          .map((skill) => [place(skill), skill]),
      );
      const after = afterName === undefined ? '' : `${afterName} ${afterAgent ?? '~'} ${afterUser === undefined ? '~' : (afterUser ?? '')}`;
      const shown = [...newest].filter(([key, { scope }]) => key > after && (agent === null || scope.agent === agent));
      return shown
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .slice(0, limit)
        .map(([, skill]) => skill);
    },
    versions: async ({ tenant, agent, user }, name) =>
      this.#of(tenant)
        .filter((skill) => skill.name === name && skill.scope.agent === agent && (user === undefined || skill.scope.user === user))
        .toSorted((a, b) => b.version - a.version),
    move: async (moves) =>
      moves.map((move) => {
        const at = this.#skills.findIndex((skill) => versionKey(skill) === wanted(move));
        const moved = movedSkill(this.#skills[at]!, move);
        this.#skills[at] = moved;
        this.moves.push(move);
        return moved;
      }),
  };

  #of(tenant: string): Skill[] {
    return this.#skills.filter(({ scope }) => scope.tenant === tenant);
  }

  /** "name@version status", of all. */
  statuses(): string[] {
    return this.#skills.map(({ name, version, status }) => `${name}@${version} ${status}`);
  }
}

const place = ({ name, scope }: Skill) => `${name} ${scope.agent} ${scope.user ?? ''}`;
const wanted = ({ key: { tenant, agent, user = null, name, version } }: SkillMove) =>
  versionKey({ name, version, scope: { tenant, agent, user } });
