import { rolloutIdOf } from '@etude/contracts/ids';
import { RecalledItem, Scope } from '@etude/contracts/memory';
import { isFinal, type TaskState } from '@etude/contracts/task';
import { isRecalledFrom, type RecordOfTenant } from '@etude/domain/recall/deleted-record';
import { type Erased, type ErasurePlace, namedRecordOf, type Trace } from './erasure-place.js';
import { taskPages } from './job-places.js';
import { runScript } from '../redis/redis.js';

/**
 * Copies of a record in the journals and events of tasks that recalled it. They are cut out once the task is over, because its worker
 * holds them until then.
 */
export const JOURNALS: ErasurePlace = {
  name: 'queue.journals',
  async *traces(erased) {
    const record = namedRecordOf(erased);
    if (record === null) return;
    for await (const ids of taskPages(erased)) {
      const traces = await Promise.all(ids.map((id) => traceOf(erased, record, id)));
      yield traces.filter((trace) => trace !== null);
    }
  },
};

async function traceOf({ tenant, at, producer: { redis, keys } }: Erased, record: RecordOfTenant, taskId: string): Promise<Trace | null> {
  const [journal, events] = [keys.journal(rolloutIdOf(taskId)), keys.events(tenant, taskId)];
  const steps = await redis.hkeys(journal);
  const recalls = steps.filter((step) => step.endsWith('.recall'));
  if (recalls.length === 0) return null;
  const [state, createdAt, agent, user] = await redis.hmget(keys.task(tenant, taskId), 'state', 'createdAt', 'agent', 'user');
  const scope = Scope.safeParse({ tenant, agent, user: user || null }).data;
  if (scope === undefined || Number(createdAt) >= at) return null;
  const isCopy = (value: unknown) => isItemOf(record, scope, value);
  const cut = (texts: ReadonlyArray<string | null>, of: readonly string[]) =>
    texts.flatMap((text, i) => {
      const left = text === null ? text : withoutItems(text, isCopy);
      return left === text ? [] : [of[i] ?? '', left ?? ''];
    });
  if (cut(await redis.hmget(journal, ...recalls), recalls).length === 0) return null;
  return async () => {
    if (!isFinal(state as TaskState)) return false;
    const changed = cut(await redis.hmget(journal, ...steps), steps);
    return runScript(redis, 'cutCopies', [journal, events], changed);
  };
}

function isItemOf(record: RecordOfTenant, scope: Scope, value: unknown): boolean {
  const item = RecalledItem.safeParse(value);
  return item.success && isRecalledFrom(record, scope, item.data);
}

/** A journal entry "<place> <JSON>" without the list items that `isCopy` accepts; the same text if there are none. */
function withoutItems(text: string, isCopy: (value: unknown) => boolean): string {
  const cut = text.indexOf(' ');
  let isCut = false;
  const left = JSON.stringify(JSON.parse(text.slice(cut)), (_key, value: unknown) => {
    if (!Array.isArray(value) || !value.some(isCopy)) return value;
    isCut = true;
    return value.filter((one) => !isCopy(one));
  });
  return isCut ? `${text.slice(0, cut)} ${left}` : text;
}
