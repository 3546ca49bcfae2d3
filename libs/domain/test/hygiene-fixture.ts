import type { Skill } from '@etude/contracts/memory';
import type { SkillMove } from '../src/ports/memory.js';
import { FakeProceduralMemory } from './fake-procedural-memory.js';
import { NEW_YEAR, skillOf } from './memory-records.js';
import { proven } from './bundle-fixture.js';

export const DAY_MS = 86_400_000;

/** An active skill for tests, with the proof for its content. It became active on New Year's Day. */
export function provenSkill(name: string, changes: Partial<Skill> = {}): Skill {
  const skill: Partial<Skill> = {
    name,
    code: `def ${name}(): ...`,
    entryPoint: name,
    status: 'active',
    history: [{ at: NEW_YEAR, by: 'verification', from: 'verified', to: 'active', reason: '' }],
    ...changes,
  };
  return proven(skillOf(skill));
}

/** Skills in a list. Records the moves that are made. */
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
