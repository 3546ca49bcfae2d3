import { rolloutIdOf } from '@etude/contracts/ids';
import { RecalledItem, Scope } from '@etude/contracts/memory';
import { isRecalledFrom, type RecordOfTenant } from '@etude/domain/recall/deleted-record';
import { z } from 'zod';
import { type Erased, type ErasurePlace, namedRecordOf, type Trace } from './erasure-place.js';
import { isTaskOver, taskPages } from './job-places.js';
import { runScript } from '../redis/redis.js';

/**
 * Copies of a record in the journals and events of tasks that recalled it, or whose tools returned it. They are removed once the task and its
 * learning are over, because a worker holds them until then. Such a task that is redriven begins anew.
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

/** A journal entry "<place> <JSON>" of a recall, of a tool call whose result has records, or of the attempts to learn from. */
const Recall = z.object({
  value: z.union([
    z.array(RecalledItem),
    z.array(z.object({ recalled: z.array(RecalledItem) })).transform((attempts) => attempts.flatMap(({ recalled }) => recalled)),
    z
      .object({ outcome: z.object({ result: z.object({ records: z.array(RecalledItem) }) }) })
      .transform(({ outcome }) => outcome.result.records),
  ]),
});
const HOLDS_RECORDS = /\.(?:recall|t\d+)$|^t\.attempts$/;

async function traceOf({ tenant, at, producer: { redis, keys } }: Erased, record: RecordOfTenant, taskId: string): Promise<Trace | null> {
  const journal = keys.journal(rolloutIdOf(taskId));
  const recalls = (await redis.hkeys(journal)).filter((step) => HOLDS_RECORDS.test(step));
  if (recalls.length === 0) return null;
  const fields = ['state', 'createdAt', 'agent', 'user', 'learning'];
  const [state, createdAt, agent, user, learning] = await redis.hmget(keys.task(tenant, taskId), ...fields);
  const scope = Scope.safeParse({ tenant, agent, user: user || null }).data;
  if (scope === undefined || Number(createdAt) >= at) return null;
  const entries = (await redis.hmget(journal, ...recalls)).map((text) => Recall.safeParse(JSON.parse((text ?? '').replace(/^\d+ /, ''))));
  if (!entries.some(({ data }) => data?.value.some((item) => isRecalledFrom(record, scope, item)))) return null;
  return async () => isTaskOver(state, learning) && runScript(redis, 'removeRecalls', [journal, keys.events(tenant, taskId)], []);
}
