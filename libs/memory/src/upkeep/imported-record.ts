import { chunkRecord, documentRecord } from '../layers/documents.js';
import { type EpisodeNote, episodeRecord, noteRecords, transitionRecord } from '../layers/episodic-layer.js';
import { factRecord } from '../layers/fact-records.js';
import { indexedTextsOf } from '../layers/indexed-texts.js';
import { parseBody, type StoredBody } from '../layers/records.js';
import { skillRecord } from '../layers/skill-records.js';
import { type MemoryRecord, RECORD_KINDS, RECORD_TEXTS_MAX, type RecordKind } from '../record-store.js';
import { asArchived, isMarkedArchived } from './archive-records.js';
import { type ExportLine, parseJson, reasonOf } from './export-lines.js';
import { unprovenAsCandidate, withOwnPins } from './imported-skill.js';
import { isDeeper } from '@etude/contracts/json';
import { DocumentChunk, DocumentRecord, Episode, Fact, Scope, Skill, Transition } from '@etude/contracts/memory';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

/** Whose the record becomes, and when: ms since 1970. */
export interface Reader {
  readonly tenant: string;
  readonly now: number;
  readonly proofChecker?: ProofChecker;
}

/** Found by more than one text each. */
const MANY_TEXTS: readonly RecordKind[] = ['fact', 'skill'];
/** As deep as Python reads JSON. Whoever reads a record calls itself for each level. */
const NESTING_MAX = 1_000;

interface Owned {
  readonly scope?: MemoryRecord['scope'];
}

/**
 * A line as a record of the reader's tenant, for whatever tenant it was written. Nothing in it is trusted: the body has to be one of its kind, of the
 * agent and user that the line says, and the layers make all else of it anew. Only the mark of an archived record is taken from the line.
 *
 * @returns why it is refused, where it is no record
 */
export function readRecord({ tenant, now, proofChecker }: Reader, line: ExportLine): Read {
  const kinds: readonly RecordKind[] = RECORD_KINDS[line.layer];
  if (!kinds.includes(line.kind)) return { refused: `kind: ${line.kind} is no kind of the ${line.layer} layer` };
  const raw = parseJson(line.body);
  if (isDeeper(raw, NESTING_MAX)) return { refused: 'body: is nested too deep' };
  const parsed = storedBodyOf(line.kind).safeParse(raw);
  if (!parsed.success) return { refused: `body.${reasonOf(parsed.error)}` };
  const { value, taken = [] } = parsed.data as { value: Owned; taken?: readonly string[] };
  const wrong = wrongNumber({ createdAt: line.createdAt }, now) ?? wrongNumber({ ...value }, now);
  if (wrong !== null) return { refused: wrong };
  const { agent, user } = line;
  if (value.scope !== undefined && (value.scope.agent !== agent || value.scope.user !== user))
    return { refused: 'body.value.scope: is of another agent or user than the line' };
  const scope = { tenant, agent, user };
  const scoped = value.scope === undefined ? value : { ...value, scope };
  const own = line.kind === 'skill' ? withOwnPins(scoped as Skill, tenant) : scoped;
  const made = BUILDERS[line.kind]({ line, scope, body: { value: own, taken } as StoredBody<never> });
  if (typeof made === 'string') return { refused: made };
  if (MANY_TEXTS.includes(line.kind) && indexedTextsOf(made).length > RECORD_TEXTS_MAX)
    return { refused: `body: is found by more than ${RECORD_TEXTS_MAX} texts` };
  const unproven = line.kind === 'skill' ? unprovenAsCandidate(own as Skill, now, proofChecker) : null;
  if (unproven !== null) return { record: skillRecord(unproven, taken) };
  // Byte for byte where it says nothing else.
  const isAsSaid = isDeepStrictEqual(raw, taken.length === 0 ? { value: own } : { value: own, taken });
  const record = isAsSaid ? { ...made, body: line.body } : made;
  return { record: isMarkedArchived(line) ? asArchived(record) : record };
}

type Read = { readonly record: MemoryRecord } | { readonly refused: string };

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
  fact: ({ body }) => factRecord(body.value, body.taken),
  summary: noteRecord,
  reflection: noteRecord,
  document: ({ line, body }) => ofDigest(line, (digest) => documentRecord({ document: body.value, digest })),
  chunk: chunkOf,
  skill: ({ body }) => skillRecord(body.value, body.taken),
};

/** The body of a note has neither the title nor the worth of its episode, so the line gives both. */
function noteRecord({ line, body }: Told): MemoryRecord | string {
  const note = body.value as EpisodeNote;
  const told = { summary: '', reflection: null, [line.kind]: note.text };
  return noteRecords({ ...note, ...told, prompt: line.title, importance: line.worth })[0] ?? 'body.value.text: is empty';
}

/** The body of a chunk has no name of its document, so the line gives it. */
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

type StoredKind = ExportLine['kind'];

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
/** Counts are told as numbers of 32 bits. */
const COUNT_MAX = 2 ** 31 - 1;

function storedBodyOf(kind: StoredKind): z.ZodType {
  return z.strictObject({ value: VALUES[kind], taken: z.array(z.string()).max(10_000).optional() });
}

/** The first number that no record can have: times may be a day ahead, for clocks that differ. `now`: ms since 1970. */
function wrongNumber(value: Readonly<Record<string, unknown>>, now: number): string | null {
  for (const [name, number] of Object.entries(value)) {
    if (typeof number !== 'number') continue;
    const isTime = TIMES.has(name);
    if (number >= 0 && number <= (isTime ? now + DAY_MS : COUNT_MAX)) continue;
    return `${name}: has to be ${isTime ? 'a time in ms since 1970, at most a day from now' : `0 to ${COUNT_MAX}`}`;
  }
  return null;
}

/** What tells two records of one key apart, by kind; the key of every other kind says what it holds. */
const TOLD: { readonly [kind in RecordKind]?: readonly string[] } = { fact: ['text', 'category'], skill: ['digest', 'description'] };

/** Whether two records of one key and owner were told the same, whatever has become of each since. */
export function areToldAlike(a: MemoryRecord, b: MemoryRecord): boolean {
  const isOneOwner = a.scope.agent === b.scope.agent && a.scope.user === b.scope.user;
  const [told, other] = [a, b].map((record) => parseBody<Readonly<Record<string, unknown>>>(record).value);
  return isOneOwner && (TOLD[a.kind] ?? []).every((name) => told?.[name] === other?.[name]);
}
