import { EtudeError } from '@etude/contracts/errors';
import type { Clock } from '@etude/domain/ports/clock';
import type { SkillKey } from '@etude/domain/ports/memory';
import { versionOfKey } from '@etude/domain/skills/life/find-skill';
import type { Memory } from '@etude/memory/memory';
import type { Erasable } from '@etude/memory/upkeep/owned-records';
import type { JobContext } from '@etude/queue/jobs/consumer';
import { type CountsByPlace, QueueErasure } from '@etude/queue/erasure/queue-erasure';
import type { Producer } from '@etude/queue/jobs/producer';
import type { StoredErasure, UpkeepStore } from '@etude/queue/memory/upkeep-store';
import type { ErasureSubject } from '@etude/queue/redis/keys';

export interface EraseDeps {
  readonly memory: Pick<Memory, 'upkeep' | 'procedural'>;
  readonly producer: Producer;
  readonly store: UpkeepStore;
  readonly clock: Clock;
  /** How long one attempt waits for running work to stop, in ms. */
  readonly stopWaitMs?: number;
}

/**
 * Removes every trace of an agent, a user, a tenant or a record, and keeps a receipt, with the remaining counts until the erasure succeeds. A
 * repeat continues where the last attempt was cut off. The reconciler marks a failed erasure.
 *
 * The queues are erased first, because they feed memory, and again after memory, to find jobs whose records are gone.
 * @throws EtudeError MEMORY_UNAVAILABLE while records are left; the queue retries the erasure
 */
export async function eraseSubject(
  { tenant, id }: { readonly tenant: string; readonly id: string },
  deps: EraseDeps,
  { signal }: JobContext,
): Promise<void> {
  const stored = await deps.store.loadErasure(tenant, id);
  if (stored === null || stored.receipt.state === 'succeeded') return;
  const run = new ErasureRun(stored, deps);
  if (stored.subject !== null) await run.erase(stored.subject, signal);
  await run.finish(signal);
}

class ErasureRun {
  readonly #queue: QueueErasure;

  constructor(
    private stored: StoredErasure,
    private readonly deps: EraseDeps,
  ) {
    const { memory, producer, stopWaitMs } = deps;
    const skillIsGone = (skill: SkillKey) => isGone(skill, memory);
    this.#queue = new QueueErasure(producer, { skillIsGone, ...(stopWaitMs === undefined ? {} : { stopWaitMs }) });
  }

  async erase(subject: ErasureSubject, signal: AbortSignal): Promise<void> {
    const { upkeep } = this.deps.memory;
    const { found, newFrom: begun } = this.stored;
    const { tenant } = this.stored.receipt;
    const owners = { tenant, ...('all' in subject ? {} : subject) };
    const all = Object.keys(found).length > 0 ? found : await this.#find(owners, subject, begun ?? undefined);
    await this.put({ state: 'running', error: null, finishedAt: null }, { found: { ...all } });
    await this.#count(await this.#queue.erase(tenant, subject, signal, begun ?? undefined));
    // Running work has stopped by now. A repeat uses the same `before`, so that newer records of the same name stay.
    await this.#removeBefore(begun ?? (await upkeep.newFrom(owners)), owners, subject, signal);
    // Removes records written during the first pass.
    if (begun === null) await this.#removeBefore(await upkeep.newFrom(owners), owners, subject, signal);
    await this.#prove(owners, subject);
  }

  /** Removes erased data from Redis's files on disk, once nothing is left and the subject's name is no longer stored. */
  async finish(signal: AbortSignal): Promise<void> {
    const notes = [...new Set([...this.stored.receipt.notes, ...(await this.#queue.purge(signal))])];
    await this.put({ state: 'succeeded', notes, finishedAt: this.deps.clock.now() });
  }

  async put(receipt: Partial<StoredErasure['receipt']>, change: Partial<Omit<StoredErasure, 'receipt'>> = {}): Promise<void> {
    this.stored = { ...this.stored, ...change, receipt: { ...this.stored.receipt, ...receipt } };
    await this.deps.store.putErasure(this.stored);
  }

  /** @param before ms since 1970; stored first, so that a repeat uses the same value */
  async #removeBefore(before: number, owners: Erasable, subject: ErasureSubject, signal: AbortSignal): Promise<void> {
    const notes = new Set(this.stored.receipt.notes);
    await this.put({}, { newFrom: before });
    await this.#count(await this.deps.memory.upkeep.erase(owners, { before, signal, onNote: (note) => notes.add(note) }));
    await this.#count(await this.#queue.erase(owners.tenant, subject, signal, before));
    await this.put({ notes: [...notes] });
  }

  async #prove(owners: Erasable, subject: ErasureSubject): Promise<void> {
    const left = await this.#find(owners, subject, this.stored.newFrom ?? undefined);
    const { receipt, found } = this.stored;
    // A worker that was killed may have removed more than it counted.
    const removed = { ...receipt.removed };
    for (const [place, count] of Object.entries(found)) removed[place] = Math.max(removed[place] ?? 0, count);
    const places = Object.fromEntries(Object.keys(removed).map((place) => [place, 0]));
    await this.put({ left: { ...places, ...left } });
    const named = Object.entries(left).map(([place, count]) => `${count} of ${place}`);
    if (named.length > 0) {
      const message = `${named.join(', ')} are not erased yet. The erasure is retried after running work has ended.`;
      throw new EtudeError('MEMORY_UNAVAILABLE', message);
    }
    await this.put({ removed }, { subject: null });
  }

  async #find(owners: Erasable, subject: ErasureSubject, newFrom?: number): Promise<CountsByPlace> {
    const inMemory = await this.deps.memory.upkeep.findErased(owners, newFrom);
    return { ...inMemory, ...(await this.#queue.find(owners.tenant, subject, newFrom)) };
  }

  async #count(counts: CountsByPlace): Promise<void> {
    const removed = { ...this.stored.receipt.removed };
    for (const [place, count] of Object.entries(counts)) removed[place] = (removed[place] ?? 0) + count;
    await this.put({ removed });
  }
}

/** Compares digests, because a new version may have the same number. */
async function isGone(key: SkillKey, { procedural }: EraseDeps['memory']): Promise<boolean> {
  return (await versionOfKey(procedural, key))?.digest !== key.digest;
}
