import { taskIdOf } from '@etude/contracts/ids';
import type { RecalledItem, Scope } from '@etude/contracts/memory';
import type { NamedRecord } from '@etude/contracts/memory-upkeep';
import { isReadBy } from '../skills/life/find-skill.js';
import { procedureSource } from '../skills/life/told-procedure.js';
import { nameOfShown, rolloutOf, sourceOf } from '../trust/sources.js';

export type RecordOfTenant = NamedRecord & Pick<Scope, 'tenant'>;

/** The task whose rollout wrote this record. null if the record is not a rollout's episode. */
export function taskOfRecord({ name }: Pick<NamedRecord, 'name'>): string | null {
  const source = sourceOf(name);
  const rollout = source?.kind === 'episodes' ? rolloutOf(source.id) : null;
  return rollout === null ? null : taskIdOf(rollout);
}

/** All names under which other records may have this record as a source. */
export function namesOfRecord(record: RecordOfTenant): ReadonlySet<string> {
  const { tenant, agent, user, name } = record;
  const task = taskOfRecord(record);
  const [, skill, version] = /^skills\/(.*)@(\d+)$/.exec(name) ?? [];
  const told = skill === undefined ? [] : [procedureSource({ tenant, agent, user }, skill, Number(version))];
  return new Set([name, ...(task === null ? [] : [`tasks/${task}`]), ...told]);
}

/** Whether an item that a task of `reader` recalled shows this record or a part of it. */
export function isRecalledFrom(record: RecordOfTenant, reader: Scope, item: Pick<RecalledItem, 'id' | 'kind'>): boolean {
  return nameOfShown(item) === record.name && mayRead(record, reader);
}

/** Whether the record's name means this record to `reader`. Only a skill's name can belong to several owners. */
export function mayRead({ tenant, name, agent, user }: RecordOfTenant, reader: Scope): boolean {
  return !name.startsWith('skills/') || isReadBy({ tenant, agent, user }, reader);
}
