import type { DocumentChunk, Scope } from '@etude/contracts/memory';
import { isDeepStrictEqual } from 'node:util';
import type { Fields, MemoryRecord } from '../../record-store.js';
import { markApplied } from '../applied-marker.js';
import { chunkRecord, documentRecord } from '../document-records.js';
import { type EpisodeNote, noteRecords } from '../episode-notes.js';
import { episodeRecord, transitionRecord } from '../episodic-records.js';
import { REQUEST } from '../request-claims.js';
import { factRecord } from '../semantic-records.js';
import { skillRecord } from '../skill-records.js';
import type { StoredBody } from '../stored-body.js';
import { ARCHIVED, FORGETTABLE } from './archive-records.js';
import type { ExportLine } from './line-format.js';

export type Rebuilt = { readonly record: MemoryRecord } | { readonly refused: string };

interface Told {
  readonly line: ExportLine;
  /** Of the importing tenant. */
  readonly scope: Scope;
  /** Its value is one of the line's kind. */
  readonly body: StoredBody<never>;
}

const DIGEST = /^[0-9a-f]{64}$/;
const NAME_CHARS_MAX = 1_000;

/** What the layer that wrote a record makes of its body, by kind. A text where it could make none of it. */
const BUILDERS: { readonly [kind in ExportLine['kind']]: (told: Told) => MemoryRecord | string } = {
  transition: ({ body }) => transitionRecord(body.value),
  episode: ({ body }) => episodeRecord(body.value),
  applied: appliedRecord,
  fact: ({ body }) => factRecord(body.value, body.taken),
  summary: noteRecord,
  reflection: noteRecord,
  document: ({ line, body }) => ofDigest(line, (digest) => documentRecord({ document: body.value, digest })),
  chunk: chunkOf,
  skill: ({ body }) => skillRecord(body.value, body.taken),
};

/**
 * The record that stands in a line, made anew from its body: what it is found by is what its layer says, whatever the line does. Only
 * the mark of what was archived is taken from the line.
 */
export function rebuiltRecord(told: Told): Rebuilt {
  const { line } = told;
  const made = BUILDERS[line.kind](told);
  if (typeof made === 'string') return { refused: made };
  if (made.key !== line.key) return { refused: 'key: is not the one that its body gives' };
  const mark = markedStatus(made, line);
  const expected: Fields = mark === null ? made.fields : { ...made.fields, status: mark };
  const wrong = wrongField(expected, line.fields);
  if (wrong !== null) return { refused: `fields.${wrong}: is not what its body gives` };
  const shown = made.shown && mark === null;
  if (shown !== line.shown) return { refused: 'shown: is not what its body gives' };
  return { record: { ...made, shown, fields: expected } };
}

/** The status of a record that was archived, with the mark behind its own; null for any other. */
function markedStatus({ kind, fields: { status } }: MemoryRecord, line: ExportLine): readonly string[] | null {
  const given = listOf(line.fields.status);
  const marked = [...listOf(status), ARCHIVED];
  return FORGETTABLE.includes(kind) && !line.shown && isDeepStrictEqual(given, marked) ? marked : null;
}

/** `subject` is how facts are found that may be the same, and another release finds them otherwise; nothing else looks at it. */
function wrongField(expected: Fields, given: ExportLine['fields']): string | null {
  const names = new Set([...Object.keys(expected), ...Object.keys(given)] as Array<keyof Fields>);
  return [...names].find((name) => name !== 'subject' && !isDeepStrictEqual(listOf(expected[name]), listOf(given[name]))) ?? null;
}

function listOf(value: string | readonly string[] | undefined): readonly string[] {
  return value === undefined ? [] : typeof value === 'string' ? [value] : value;
}

/** Its source is the fact that it came to, or the digest of the request and what its repeat has to know; see `notedFactId` and `claimRequest`. */
function appliedRecord({ line, scope, body }: Told): MemoryRecord | string {
  if (body.taken.length > 0) return 'body.taken: is for records that writes change';
  const [first = '', note = '', ...others] = line.sources;
  const hasNote = note === '' || (line.key.startsWith(REQUEST) && DIGEST.test(first) && note.length <= NAME_CHARS_MAX);
  if (others.length > 0 || !hasNote) return 'sources: are more than a note of a write has';
  const { record } = markApplied(line.layer, scope, line.key, line.createdAt);
  return { ...record, sources: line.sources };
}

/** How an episode is called and what it is worth stands in the episode alone. */
function noteRecord({ line, body }: Told): MemoryRecord | string {
  const note = body.value as EpisodeNote;
  const told = { summary: '', reflection: null, [line.kind]: note.text };
  return noteRecords({ ...note, ...told, prompt: line.title, importance: line.worth })[0] ?? 'body.value.text: is empty';
}

/** What its document is called stands in the document alone. */
function chunkOf({ line, body }: Told): MemoryRecord | string {
  const { title = '', ...chunk } = body.value as DocumentChunk;
  const [name = ''] = line.sources;
  if (line.sources.length !== 1 || name === '' || name.length > NAME_CHARS_MAX) return 'sources: has to be the name of its document';
  return ofDigest(line, (digest) => chunkRecord({ document: { id: chunk.documentId, name, title }, digest }, chunk));
}

/** The digest is of all chunks together; chunks that are not those of their document go when memory is reconciled. */
function ofDigest({ fields: { digest } }: ExportLine, made: (digest: string) => MemoryRecord): MemoryRecord | string {
  return typeof digest === 'string' && DIGEST.test(digest) ? made(digest) : 'fields.digest: has to be 64 hexadecimal digits';
}
