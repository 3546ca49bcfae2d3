import { EtudeError } from '@etude/contracts/errors';
import type { Clock } from '@etude/domain/ports/clock';
import type { SkillKey } from '@etude/domain/ports/skill-registry';
import { versionOfKey } from '@etude/domain/skills/life/find-skill';
import type { Memory } from '@etude/memory/memory';
import type { Owners } from '@etude/memory/record-store';
import type { JobContext } from '@etude/queue/jobs/consumer';
import { type CountsByPlace, QueueErasure } from '@etude/queue/erasure/queue-erasure';
import { finalFailure } from '@etude/queue/jobs/job-end';
import type { Producer } from '@etude/queue/jobs/producer';
import type { StoredErasure, UpkeepStore } from '@etude/queue/memory/upkeep-store';
import type { ErasureSubject } from '@etude/queue/redis/keys';

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
  if (stored === null || stored.receipt.state === 'succeeded') return;
  const { subject } = stored;
  const erasure = new QueueErasure(deps.producer, {
    skillIsGone: (skill) => isGone(skill, deps.memory),
    ...(deps.stopWaitMs === undefined ? {} : { stopWaitMs: deps.stopWaitMs }),
  });
  const run = new ErasureRun(stored, erasure, deps);
  try {
    if (subject !== null) await run.erase(subject, context.signal);
    await run.finish(context.signal);
  } catch (error) {
    const failure = finalFailure(error, context);
    if (failure !== null) await run.fail(failure);
    throw error;
  }
}

class ErasureRun {
  #stored: StoredErasure;

  constructor(
    stored: StoredErasure,
    private readonly erasure: QueueErasure,
    private readonly deps: EraseDeps,
  ) {
    this.#stored = stored;
  }

  async erase(subject: ErasureSubject, signal: AbortSignal): Promise<void> {
    const owners = { tenant: this.#stored.receipt.tenant, ...('all' in subject ? {} : subject) };
    await this.#begin(owners, subject);
    await this.#remove(owners, subject, signal);
    await this.#prove(owners, subject);
  }

  /** Nothing is left, and no name is written down any more: now what Redis wrote down of it on its disk can go. */
  async finish(signal: AbortSignal): Promise<void> {
    const notes = [...new Set([...this.#stored.receipt.notes, ...(await this.erasure.purge(signal))])];
    await this.#put({ state: 'succeeded', notes, finishedAt: this.deps.clock.now() });
  }

  /** What there is is counted before anything is removed. */
  async #begin(owners: Owners, subject: ErasureSubject): Promise<void> {
    const { found: before, newFrom } = this.#stored;
    const found = Object.keys(before).length > 0 ? before : await this.#find(owners, subject, newFrom ?? Number.MAX_SAFE_INTEGER);
    await this.#put({ state: 'running', error: null, finishedAt: null }, { found: { ...found } });
  }

  async #remove(owners: Owners, subject: ErasureSubject, signal: AbortSignal): Promise<void> {
    const { upkeep } = this.deps.memory;
    const begun = this.#stored.newFrom;
    await this.#count(await this.erasure.erase(owners.tenant, subject, signal, begun ?? undefined));
    // Once what ran has been stopped, and for good: a repeat takes nothing from who comes after.
    await this.#removeBefore(begun ?? (await upkeep.newFrom(owners)), owners, subject, signal);
    // What was told meanwhile goes too.
    if (begun === null) await this.#removeBefore(await upkeep.newFrom(owners), owners, subject, signal);
  }

  /** @param before ms since 1970; written down first, so that a repeat keeps to it */
  async #removeBefore(before: number, owners: Owners, subject: ErasureSubject, signal: AbortSignal): Promise<void> {
    const notes = new Set(this.#stored.receipt.notes);
    await this.#put({}, { newFrom: before });
    await this.#count(await this.deps.memory.upkeep.erase(owners, { before, signal, onNote: (note) => notes.add(note) }));
    await this.#count(await this.erasure.erase(owners.tenant, subject, signal, before));
    await this.#put({ notes: [...notes] });
  }

  async #prove(owners: Owners, subject: ErasureSubject): Promise<void> {
    const left = await this.#find(owners, subject, this.#stored.newFrom ?? undefined);
    const { receipt, found } = this.#stored;
    // A worker that was killed may have removed more than it could write down.
    const removed = { ...receipt.removed };
    for (const [place, count] of Object.entries(found)) removed[place] = Math.max(removed[place] ?? 0, count);
    const places = Object.fromEntries(Object.keys(removed).map((place) => [place, 0]));
    await this.#put({ left: { ...places, ...left } });
    if (Object.keys(left).length > 0)
      throw new EtudeError('MEMORY_UNAVAILABLE', `${sentenceOf(left)} still there; it is tried again, once what runs has ended`);
    const notes = Object.keys(removed).length === 0 ? [NOTHING_FOUND, ...receipt.notes] : receipt.notes;
    await this.#put({ removed, notes: [...new Set(notes)] }, { subject: null });
  }

  async fail(failure: string): Promise<void> {
    await this.#put({ state: 'failed', error: failure, finishedAt: this.deps.clock.now() });
  }

  async #find(owners: Owners, subject: ErasureSubject, newFrom?: number): Promise<CountsByPlace> {
    const inMemory = await this.deps.memory.upkeep.findErased(owners, newFrom);
    return { ...inMemory, ...(await this.erasure.find(owners.tenant, subject, newFrom)) };
  }

  async #count(counts: CountsByPlace): Promise<void> {
    const removed = { ...this.#stored.receipt.removed };
    for (const [place, count] of Object.entries(counts)) removed[place] = (removed[place] ?? 0) + count;
    await this.#put({ removed });
  }

  async #put(receipt: Partial<StoredErasure['receipt']>, change: Partial<Omit<StoredErasure, 'receipt'>> = {}): Promise<void> {
    this.#stored = { ...this.#stored, ...change, receipt: { ...this.#stored.receipt, ...receipt } };
    await this.deps.store.putErasure(this.#stored);
  }
}

const NOTHING_FOUND = 'nothing was found: check the name, if there should have been something';

/** Another version may have taken its number. */
async function isGone(key: SkillKey, { procedural }: EraseDeps['memory']): Promise<boolean> {
  return (await versionOfKey(procedural, key))?.digest !== key.digest;
}

function sentenceOf(left: CountsByPlace): string {
  return Object.entries(left)
    .map(([place, count]) => `${count} of ${place}`)
    .join(', ');
}
