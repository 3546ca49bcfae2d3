import { Readable } from 'node:stream';
import type { Skill } from '@etude/contracts/memory';
import type { SkillDependency, SkillProof } from '@etude/contracts/skill-proof';
import type { SkillMove } from '../src/ports/skill-registry.js';
import { NEW_YEAR, skillOf } from './memory-records.js';
import type { PruneDeps } from '../src/skills/life/prune.js';
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

  readonly procedural: PruneDeps['procedural'] = {
    every: ({ tenant, agent }) =>
      Readable.from(
        this.#of(tenant)
          .filter(({ scope }) => agent === null || scope.agent === agent)
          .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      ),
    versions: async ({ tenant, agent, user }, name, status) =>
      this.#of(tenant)
        .filter((skill) => skill.name === name && skill.scope.agent === agent && (user === undefined || skill.scope.user === user))
        .filter((skill) => status === undefined || skill.status === status)
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

const wanted = ({ key: { tenant, agent, user = null, name, version } }: SkillMove) =>
  versionKey({ name, version, scope: { tenant, agent, user } });
