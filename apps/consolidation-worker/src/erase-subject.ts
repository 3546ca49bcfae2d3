import { errorCode, EtudeError, isRetryable } from '@etude/contracts/errors';
import type { Clock } from '@etude/domain/ports/clock';
import type { Memory } from '@etude/memory/memory';
import type { Owners } from '@etude/memory/record-store';
import type { JobContext } from '@etude/queue/consumer';
import { type CountsByPlace, QueueErasure } from '@etude/queue/erasure/queue-erasure';
import { leaseEndOf } from '@etude/queue/lease';
import type { Producer } from '@etude/queue/producer';
import type { ErasureSubject, StoredErasure, UpkeepStore } from '@etude/queue/upkeep-store';

export interface EraseDeps {
  readonly memory: Pick<Memory, 'upkeep' | 'procedural'>;
  readonly producer: Producer;
  readonly store: UpkeepStore;
  readonly clock: Clock;
  /** How long what runs is waited for in one attempt, after it was told to stop. */
  readonly stopWaitMs?: number;
}

/**
 * Removes every trace of an agent, a user or a tenant, and keeps the receipt: running, then succeeded with nothing left, or failed with
 * what is left. Repeating it goes on where it was cut off.
 *
 * First what feeds memory, then memory, then the rest: jobs about what memory had are known by its being gone.
 * @throws EtudeError MEMORY_UNAVAILABLE while something is left, to be tried again
 */
export async function eraseSubject(
  { tenant, id }: { readonly tenant: string; readonly id: string },
  deps: EraseDeps,
  context: JobContext,
): Promise<void> {
  const stored = await deps.store.loadErasure(tenant, id);
  if (stored === null || stored.subject === null) return;
  const { subject } = stored;
  const erasure = new QueueErasure(deps.producer, {
    skillIsGone: (skill) => isGone(skill, deps.memory),
    ...(deps.stopWaitMs === undefined ? {} : { stopWaitMs: deps.stopWaitMs }),
  });
  const run = new ErasureRun(stored, subject, erasure, deps);
  try {
    await run.begin();
    await run.remove(context.signal);
    await run.prove();
  } catch (error) {
    await run.recordFailure(error, context);
    throw error;
  }
}

class ErasureRun {
  #stored: StoredErasure;
  readonly #owners: Owners;

  constructor(
    stored: StoredErasure,
    private readonly subject: ErasureSubject,
    private readonly erasure: QueueErasure,
    private readonly deps: EraseDeps,
  ) {
    this.#stored = stored;
    this.#owners = { tenant: stored.receipt.tenant, ...('all' in subject ? {} : subject) };
  }

  /** What there is is counted before anything is removed. */
  async begin(): Promise<void> {
    const found = Object.keys(this.#stored.found).length > 0 ? this.#stored.found : await this.#find();
    await this.#put({ state: 'running', error: null, finishedAt: null }, found);
  }

  async remove(signal: AbortSignal): Promise<void> {
    const { tenant } = this.#owners;
    const notes = new Set(this.#stored.receipt.notes);
    await this.#count(await this.erasure.erase(tenant, this.subject, signal));
    await this.#count(await this.deps.memory.upkeep.erase(this.#owners, signal, (note) => notes.add(note)));
    await this.#count(await this.erasure.erase(tenant, this.subject, signal));
    await this.#put({ notes: [...notes] });
  }

  async prove(): Promise<void> {
    const left = await this.#find();
    const { receipt, found } = this.#stored;
    // A worker that was killed may have removed more than it could write down.
    const removed = { ...receipt.removed };
    for (const [place, count] of Object.entries(found)) removed[place] = Math.max(removed[place] ?? 0, count);
    const places = Object.fromEntries(Object.keys(removed).map((place) => [place, 0]));
    await this.#put({ left: { ...places, ...left } });
    if (Object.keys(left).length > 0)
      throw new EtudeError('MEMORY_UNAVAILABLE', `${sentenceOf(left)} still there; it is tried again, once what runs has ended`);
    await this.#put({ state: 'succeeded', removed, finishedAt: this.deps.clock.now() });
  }

  /** A run that another attempt or another worker takes up is no failure yet. */
  async recordFailure(error: unknown, { signal, isLastAttempt }: JobContext): Promise<void> {
    if (leaseEndOf(signal) !== null || (isRetryable(error) && !isLastAttempt)) return;
    const text = `${errorCode(error)}: ${error instanceof Error ? error.message : String(error)}`;
    await this.#put({ state: 'failed', error: text, finishedAt: this.deps.clock.now() });
  }

  async #find(): Promise<CountsByPlace> {
    const inMemory = await this.deps.memory.upkeep.findErased(this.#owners);
    return { ...inMemory, ...(await this.erasure.find(this.#owners.tenant, this.subject)) };
  }

  async #count(counts: CountsByPlace): Promise<void> {
    const removed = { ...this.#stored.receipt.removed };
    for (const [place, count] of Object.entries(counts)) removed[place] = (removed[place] ?? 0) + count;
    await this.#put({ removed });
  }

  async #put(change: Partial<StoredErasure['receipt']>, found: CountsByPlace = this.#stored.found): Promise<void> {
    this.#stored = { ...this.#stored, found: { ...found }, receipt: { ...this.#stored.receipt, ...change } };
    await this.deps.store.putErasure(this.#stored);
  }
}

/** Another version may have taken its number. */
async function isGone(
  { tenant, agent, name, version, digest }: { tenant: string; agent: string; name: string; version: number; digest: string },
  { procedural }: EraseDeps['memory'],
): Promise<boolean> {
  return (await procedural.get({ tenant, agent }, name, version))?.digest !== digest;
}

function sentenceOf(left: CountsByPlace): string {
  return Object.entries(left)
    .map(([place, count]) => `${count} of ${place}`)
    .join(', ');
}
