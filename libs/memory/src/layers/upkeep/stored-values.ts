import { DocumentChunk, DocumentRecord, Episode, Fact, Scope, Skill, Transition } from '@etude/contracts/memory';
import { z } from 'zod';
import type { RecordKind } from '../../record-store.js';

/** As `EpisodeNote`. */
const Note = z.strictObject({ id: z.string(), scope: Scope, rolloutId: z.string(), text: z.string(), createdAt: z.number().int() });

/** What may stand as the value in a body, by the kind of its record. */
const VALUES: { readonly [kind in Exclude<RecordKind, 'erasure'>]: z.ZodType } = {
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

export function storedBodyOf(kind: Exclude<RecordKind, 'erasure'>): z.ZodType {
  return z.strictObject({ value: VALUES[kind], taken: z.array(z.string()).max(10_000).optional() });
}
