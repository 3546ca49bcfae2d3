import type { Skill } from '@etude/contracts/memory';
import type { StoredRecord } from '../record-store.js';
import { parseBody } from './stored-body.js';

export interface StoredSkill {
  readonly record: StoredRecord;
  readonly skill: Skill;
  readonly taken: readonly string[];
}

export function openedSkill(record: StoredRecord): StoredSkill {
  const { value, taken } = parseBody<Skill>(record);
  return { record, skill: value, taken };
}
