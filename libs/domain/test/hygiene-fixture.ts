import type { Skill } from '@etude/contracts/memory';
import type { SkillMove } from '../src/ports/memory.js';
import { FakeProceduralMemory } from './fake-procedural-memory.js';
import { NEW_YEAR, skillOf } from './memory-records.js';
import { proofOf } from './skill-lives.js';
import { skillDigest } from '../src/skills/content-digest.js';

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
  const proof = proofOf(skill, { testsPassed: 1, mutantsMade: 1, mutantsNoticed: 1, confidence: 1 });
  return { ...skill, digest, proof };
}

/** Skills in a list, with the moves that were made. */
export class Shelf extends FakeProceduralMemory {
  readonly moves: SkillMove[] = [];
  readonly procedural = this;

  constructor(...skills: Skill[]) {
    super();
    this.keep(...skills);
  }

  override async move(moves: readonly SkillMove[]): Promise<readonly Skill[]> {
    const moved = await super.move(moves);
    this.moves.push(...moves);
    return moved;
  }
}
