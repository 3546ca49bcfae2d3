import { ConsolidatedAgent, ConsolidationRecord } from '@etude/contracts/memory-upkeep';
import { ConsolidationRunJob } from '@etude/contracts/queues';
import type { ConsolidationReport } from '@etude/domain/ports/consolidation-units';
import type { ChatResponse } from '@etude/domain/ports/model';
import { type DurableWork, Records } from '../jobs/durable-work.js';
import type { Producer } from '../jobs/producer.js';
import { answersOf, namesAfter, newestFirst, type Page, type PageAsk } from '../redis/pages.js';
import { consolidationKeys, memberOf, newId, RETENTION_MS } from '../redis/keys.js';
import { RedisStore } from '../redis/redis.js';

type ConsolidationAsk = Pick<ConsolidationRecord, 'agent' | 'days' | 'dryRun'> & Partial<Pick<ConsolidationRecord, 'force'>>;

/** Consolidation runs that callers asked for, each kept for a week after its end. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class ConsolidationStore extends RedisStore {
  readonly #records: Records<typeof ConsolidationRecord>;

  constructor(producer: Producer) {
    super(producer.redis, producer.keys);
    this.#records = new Records(producer, {
      schema: ConsolidationRecord,
      what: 'consolidation run',
      outbox: this.keys.consolidationOutbox,
      key: this.keys.consolidation,
      queue: ConsolidationRunJob,
      job: (record) => (isOver(record) ? null : jobOf(record)),
      method: 'consolidate',
      requestKeptMs: RETENTION_MS,
    });
  }

  /** Unfinished runs, for the reconciler. A run whose job is dead has failed. */
  get work(): DurableWork {
    return this.#records.work(async (tenant, id, { code, message }, diedAt) => {
      const record = await this.get(tenant, id);
      if (record !== null) await this.put({ ...record, state: 'failed', error: `${code}: ${message}`, endedAt: diedAt });
      return 'over';
    });
  }

  /** Asks for a run. @throws EtudeError as `Records.create` */
  async create(tenant: string, ask: ConsolidationAsk, requestId: string): Promise<ConsolidationRecord> {
    const record = ConsolidationRecord.parse({ ...ask, id: newId('c'), tenant, state: 'queued', createdAt: Date.now() });
    const made = await this.#records.create({ tenant, id: record.id, record, requestId, asked: ask });
    await this.ask(this.redis.zadd(this.keys.consolidations(tenant), 0, listedAs(made)));
    return made;
  }

  /** Newest first. */
  async list(tenant: string, page: PageAsk): Promise<Page<ConsolidationRecord>> {
    const look = async (members: readonly string[]) => {
      const reads = this.redis.pipeline();
      for (const member of members) reads.get(this.keys.consolidation(tenant, member.slice(TIME_DIGITS)));
      return ((await answersOf(reads)) as ReadonlyArray<string | null>).map((text) =>
        text === null ? null : { isWanted: true, load: async () => ConsolidationRecord.parse(JSON.parse(text)) },
      );
    };
    return this.ask(newestFirst(this.redis, this.keys.consolidations(tenant), page, look));
  }

  get(tenant: string, runId: string): Promise<ConsolidationRecord | null> {
    return this.#records.get(tenant, runId);
  }

  /** For the holder of the job: stores a run's progress or end. A run that began before an erasure is removed: it may quote erased data. */
  async put(record: ConsolidationRecord): Promise<void> {
    const { tenant, id, createdAt, state } = record;
    const [key, lines, answers] = consolidationKeys(this.keys, tenant, id);
    const places = [key, this.keys.consolidationOutbox, lines, answers, this.keys.erased(tenant), this.keys.consolidations(tenant)];
    const keptMs = isOver(record) ? RETENTION_MS : 0;
    const args = [JSON.stringify(record), memberOf(tenant, id), keptMs, createdAt, Number(state === 'done'), listedAs(record)];
    await this.run('putConsolidation', places, args);
  }

  /** For the holder of the job: reads and writes the stored parts of a run in progress. */
  report(run: ConsolidationRecord): ConsolidationReport {
    const [, lines, answers] = consolidationKeys(this.keys, run.tenant, run.id);
    const get = async (key: string, field: string): Promise<unknown> => JSON.parse((await this.redis.hget(key, field)) ?? 'null');
    const put = async (key: string, field: string, value: object) => {
      const args = [field, JSON.stringify(value), run.createdAt, RETENTION_MS];
      await this.run('putConsolidationPart', [key, this.keys.erased(run.tenant)], args);
    };
    return {
      line: async (agent) => ConsolidatedAgent.nullable().parse(await get(lines, agent)),
      putLine: (line) => put(lines, line.agent, line),
      answer: async (key) => (await get(answers, key)) as ChatResponse | null,
      putAnswer: (key, answer) => put(answers, key, answer),
      progress: (counts) => this.put({ ...run, ...counts }),
    };
  }

  /** A run's lines in the order of the agents' names, starting after `after`. */
  async agents(
    tenant: string,
    runId: string,
    { limit, after }: { readonly limit: number; readonly after: string | null },
  ): Promise<readonly ConsolidatedAgent[]> {
    const lines = await this.ask(this.redis.hgetall(this.keys.consolidatedAgents(tenant, runId)));
    return namesAfter(Object.keys(lines), after ?? '', limit).map((agent) => ConsolidatedAgent.parse(JSON.parse(lines[agent]!)));
  }

  async noteUndone(run: ConsolidationRecord, agents: readonly string[]): Promise<void> {
    const report = this.report(run);
    for (const agent of agents) {
      const known = await report.line(agent);
      if (known !== null) await report.putLine({ ...known, state: 'undone' });
    }
  }
}

export const isOver = ({ state }: ConsolidationRecord): boolean => state === 'done' || state === 'failed';

const TIME_DIGITS = 15;

export const listedAs = ({ id, createdAt }: Pick<ConsolidationRecord, 'id' | 'createdAt'>): string =>
  `${String(createdAt).padStart(TIME_DIGITS, '0')}${id}`;

const jobOf = ({ tenant, id, agent, days, dryRun }: ConsolidationRecord) => ({ v: 1 as const, tenant, runId: id, agent, days, dryRun });
