import { DocumentChunk, DocumentRecord, Episode, Fact, Scope, Skill, Transition } from '@etude/contracts/memory';
import { z } from 'zod';
import type { RecordKind } from '../../record-store.js';

export type StoredKind = Exclude<RecordKind, 'erasure'>;

/** As `EpisodeNote`. */
const Note = z.strictObject({
  id: z.string(),
  scope: Scope,
  rolloutId: z.string(),
  text: z.string(),
  touched: z.array(z.string()).optional(),
  createdAt: z.number().int(),
});

/** What may stand as the value in a body, by the kind of its record. */
const VALUES: { readonly [kind in StoredKind]: z.ZodType } = {
  transition: Transition,
  episode: Episode,
  applied: z.strictObject({}),
  fact: Fact,
  summary: Note,
  reflection: Note,
  document: DocumentRecord,
  /** With the title of its document. */
  chunk: DocumentChunk.extend({ title: z.string().optional() }),
  skill: Skill,
};

const TIMES: ReadonlySet<string> = new Set(['createdAt', 'updatedAt', 'validFrom', 'validTo']);
const DAY_MS = 86_400_000;
/** Nothing of what is counted comes near it; what is larger does not fit where numbers of 32 bits are told. */
const COUNT_MAX = 2 ** 31 - 1;

export function storedBodyOf(kind: StoredKind): z.ZodType {
  return z.strictObject({ value: VALUES[kind], taken: z.array(z.string()).max(10_000).optional() });
}

/** Why the numbers in it are none that a record can have; null where they are. `now`: ms since 1970. */
export function wrongNumber(value: Readonly<Record<string, unknown>>, now: number): string | null {
  for (const [name, number] of Object.entries(value)) {
    if (typeof number !== 'number') continue;
    const reason = TIMES.has(name) ? wrongTime(number, now) : wrongCount(number);
    if (reason !== null) return `${name}: ${reason}`;
  }
  return null;
}

/** A day for clocks that differ. */
function wrongTime(time: number, now: number): string | null {
  return time >= 0 && time <= now + DAY_MS ? null : 'has to be a time in ms since 1970, at most a day from now';
}

function wrongCount(count: number): string | null {
  return count >= 0 && count <= COUNT_MAX ? null : `has to be 0 to ${COUNT_MAX}`;
}
