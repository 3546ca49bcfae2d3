import { boundedLabel, gauges } from '@etude/platform/metrics';
import type { DeadLetters, QueueCounts } from '@etude/queue/jobs/dead-letters';
import type { Tenants } from '@etude/queue/spend/spend-store';
import type { MemoryAccess } from '../calls/memory-access.js';

interface MetricsDeps {
  readonly dead: DeadLetters;
  readonly tenants: Tenants;
  readonly memory: MemoryAccess;
}

/** How many tenants are shown and have their memory counted: the first by name. */
const TENANTS_MAX = 50;
const QUEUES_KEPT_MS = 1_000;
/** Longer than for queues, because counting memory reads its database. */
const MEMORY_KEPT_MS = 60_000;

/** The answer of `read`, at most `ms` old. Scrapes of several gauges share it. */
function kept<T>(ms: number, read: () => Promise<T>): () => Promise<T> {
  let at = Number.NEGATIVE_INFINITY;
  let answer: Promise<T>;
  return () => {
    if (performance.now() - at < ms) return answer;
    at = performance.now();
    answer = read();
    // A failure is not kept.
    answer.catch(() => (at = Number.NEGATIVE_INFINITY));
    return answer;
  };
}

const SECOND_MS = 1_000;
const queueGauge = (name: string, help: string, counts: () => Promise<readonly QueueCounts[]>, value: (queue: QueueCounts) => number) =>
  gauges({
    name,
    help,
    labels: ['queue'],
    collect: async () => (await counts()).map((queue) => ({ labels: { queue: queue.name }, value: value(queue) })),
  });

/** Shows the whole installation at each gateway's /metrics: queues, tenants, memory. Every gateway shows the same values. */
export function showInstallation({ dead, tenants, memory }: MetricsDeps): void {
  const counts = kept(QUEUES_KEPT_MS, () => dead.queues());
  queueGauge('etude_queue_waiting', 'Jobs that wait for a worker', counts, ({ waiting }) => waiting);
  queueGauge('etude_queue_active', 'Jobs that run', counts, ({ active }) => active);
  queueGauge('etude_queue_delayed', 'Jobs that wait for their time', counts, ({ delayed }) => delayed);
  const depth = 'Jobs that wait, run or are due; workers are scaled by this number';
  queueGauge('etude_queue_depth', depth, counts, ({ waiting, active, due }) => waiting + active + due);
  queueGauge('etude_queue_dead', 'Dead letters', counts, (queue) => queue.dead);
  queueGauge('etude_queue_workers', 'Workers that take jobs', counts, ({ workers }) => workers);
  const oldest = 'Age of the job that has waited longest';
  queueGauge('etude_queue_oldest_seconds', oldest, counts, ({ oldestWaitingMs }) => Math.max(0, oldestWaitingMs) / SECOND_MS);
  const label = boundedLabel(TENANTS_MAX);
  const uses = kept(QUEUES_KEPT_MS, async () => (await tenants.list({ pageSize: TENANTS_MAX })).items);
  gauges({
    name: 'etude_tenant_tasks',
    help: 'Unfinished tasks, by tenant; the first 50 tenants',
    labels: ['tenant', 'state'],
    collect: async () =>
      (await uses()).flatMap(({ tenant, waiting, running }) => [
        { labels: { tenant: label(tenant), state: 'waiting' }, value: waiting },
        { labels: { tenant: label(tenant), state: 'running' }, value: running },
      ]),
  });
  gauges({
    name: 'etude_tenant_refused_today',
    help: 'Calls of the day (UTC) that a limit of the tenant refused',
    labels: ['tenant'],
    collect: async () => (await uses()).map(({ tenant, refusedToday }) => ({ labels: { tenant: label(tenant) }, value: refusedToday })),
  });
  showMemory({ tenants, memory });
}

function showMemory({ tenants, memory }: Pick<MetricsDeps, 'tenants' | 'memory'>): void {
  const sums = kept(MEMORY_KEPT_MS, async () => {
    const [{ items }, { upkeep, semantic }] = await Promise.all([tenants.list({ pageSize: TENANTS_MAX }), memory.open()]);
    const records = new Map<string, number>();
    let [unsettled, bytes] = [0, 0];
    for (const { tenant } of items) {
      const stats = await upkeep.stats(tenant);
      for (const { layer, records: more } of stats.layers) records.set(layer, (records.get(layer) ?? 0) + more);
      bytes = stats.diskBytes ?? 0;
      unsettled += await semantic.unsettled(tenant);
    }
    return { records, unsettled, bytes };
  });
  gauges({
    name: 'etude_memory_records',
    help: 'Records of the tenants in use today, by layer; at most a minute old',
    labels: ['layer'],
    collect: async () => [...(await sums()).records].map(([layer, value]) => ({ labels: { layer }, value })),
  });
  gauges({
    name: 'etude_memory_bytes',
    help: 'Size of the memory on disk; 0 where the database does not tell',
    collect: async () => [{ labels: {}, value: (await sums()).bytes }],
  });
  gauges({
    name: 'etude_memory_unsettled',
    help: 'Facts that have not been compared with older ones yet',
    collect: async () => [{ labels: {}, value: (await sums()).unsettled }],
  });
}
