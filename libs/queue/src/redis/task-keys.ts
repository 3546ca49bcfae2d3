import { taskIdOf } from '@etude/contracts/ids';
import type { RedisKeys } from './keys.js';

/** A rollout and whose it is. */
export interface RolloutAddress {
  readonly tenant: string;
  readonly taskId: string;
  readonly rolloutId: string;
}

/** Keys of a task and its rollout, in the order in which the scripts want them. */
export function taskKeys(keys: RedisKeys, { tenant, taskId, rolloutId }: RolloutAddress): string[] {
  return [
    keys.task(tenant, taskId),
    keys.rollout(rolloutId),
    keys.journal(rolloutId),
    keys.events(tenant, taskId),
    keys.rolloutOutbox,
    keys.tasks(tenant),
  ];
}

/** Neither a tenant nor an id holds a "/". */
export const memberOf = (tenant: string, id: string): string => `${tenant}/${id}`;

/** null where the text is no `<tenant>/<id>`. */
export function parseMember(member: string): { tenant: string; id: string } | null {
  const cut = member.indexOf('/');
  return cut < 1 ? null : { tenant: member.slice(0, cut), id: member.slice(cut + 1) };
}

/** null where the member names no rollout. */
export function rolloutOfMember(member: string): RolloutAddress | null {
  const parsed = parseMember(member);
  return parsed && { tenant: parsed.tenant, rolloutId: parsed.id, taskId: taskIdOf(parsed.id) };
}

/** How long a task and all that belongs to it is kept after its end: 7 days unless the operator says otherwise. */
export const RETENTION_MS = 7 * 86_400_000;
