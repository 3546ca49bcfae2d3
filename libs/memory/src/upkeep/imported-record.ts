import { conversationId, conversationRecord, turnKey, turnRecord } from '../layers/conversation-records.js';
import { chunkRecord, documentRecord } from '../layers/documents.js';
import { EpisodeNote, episodeRecord, noteRecords, transitionRecord } from '../layers/episodic-layer.js';
import { showsRecord } from '../layers/item-shows.js';
import { factRecord } from '../layers/fact-records.js';
import { asArchived, isArchived, type StoredBody } from '../layers/records.js';
import { skillKey, skillRecord } from '../layers/skill-records.js';
import { type MemoryRecord, RECORD_KINDS, type RecordKind } from '../record-store.js';
import { type ExportLine, reasonOf } from './export-lines.js';
import type { UpkeepDeps } from './record-upkeep.js';
import { Conversation, Turn } from '@etude/contracts/conversation';
import { DocumentChunk, DocumentRecord, Episode, Fact, ItemShows, Skill, Transition } from '@etude/contracts/memory';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { parsedJson } from '@etude/contracts/json';
import type { ProofChecker } from '@etude/domain/ports/verification';
import { hasHiddenTests, isInWords, skillDigest } from '@etude/domain/skills/content-digest';
import { isProofOf, newCandidate, PROVEN } from '@etude/domain/skills/life/skill-life';
import { isProven } from '@etude/domain/skills/proof/proof';
import { createHash } from 'node:crypto';

/**
 * Turns a line of any tenant's export into a record of `tenant`, which imports it. The line isn't trusted: its body must be valid for its
 * kind and have the line's agent and user. All else is rebuilt from the body. Only the archive mark is taken from the line.
 *
 * @returns the record, or the reason why the line is refused
 */
export function readRecord({ clock, proofChecker }: UpkeepDeps, tenant: string, line: ExportLine): MemoryRecord | string {
  const kinds: readonly RecordKind[] = RECORD_KINDS[line.layer];
  if (!kinds.includes(line.kind)) return `kind: ${line.kind} is no kind of the ${line.layer} layer`;
  const now = clock.now();
  const raw = parsedJson(line.body);
  const [schema, build] = KINDS[line.kind];
  const parsed = z.strictObject({ value: schema, taken: z.array(z.string()).max(TAKEN_READ_MAX).optional() }).safeParse(raw);
  if (!parsed.success) return `body.${reasonOf(parsed.error)}`;
  const { value, taken = [] } = parsed.data as { value: Partial<Pick<MemoryRecord, 'scope'>>; taken?: readonly string[] };
  const wrong = wrongNumber({ createdAt: line.createdAt }, now) ?? wrongNumber({ ...value }, now);
  if (wrong !== null) return wrong;
  const { agent, user } = line;
  if (value.scope !== undefined && (value.scope.agent !== agent || value.scope.user !== user))
    return 'body.value.scope: must have the agent and user of the line';
  const scoped = value.scope === undefined ? value : { ...value, scope: { tenant, agent, user } };
  const own = line.kind === 'skill' ? withOwnPins(scoped as Skill, tenant) : scoped;
  const made = build({ line, body: { value: own, taken } as StoredBody<never> });
  if (typeof made === 'string') return made;
  const unproven = line.kind === 'skill' ? unprovenAsCandidate(own as Skill, now, proofChecker) : null;
  if (unproven !== null) return skillRecord(unproven, taken);
  // Keeps the body byte for byte if the rebuilt body has the same content.
  const isAsSaid = isDeepStrictEqual(raw, taken.length === 0 ? { value: own } : { value: own, taken });
  const record = isAsSaid ? { ...made, body: line.body } : made;
  return isArchived(line) ? asArchived(record) : record;
}

interface Told {
  readonly line: ExportLine;
  /** The body, checked against the line's kind. */
  readonly body: StoredBody<never>;
}

const DIGEST = /^[0-9a-f]{64}$/;

const NAME_CHARS_MAX = 1_000;
const TAKEN_READ_MAX = 10_000;

/** By kind: the schema of the body's value, and the function that rebuilds the record, or returns the reason for a refusal. */
const KINDS: { readonly [kind in ExportLine['kind']]: readonly [z.ZodType, (told: Told) => MemoryRecord | string] } = {
  transition: [Transition, ({ body }) => transitionRecord(body.value)],
  episode: [Episode, ({ body }) => episodeRecord(body.value)],
  fact: [Fact, ({ body }) => factRecord(body.value, body.taken)],
  summary: [EpisodeNote, noteRecord],
  reflection: [EpisodeNote, noteRecord],
  document: [DocumentRecord, ({ line, body }) => ofDigest(line, (digest) => documentRecord(body.value, digest))],
  // A stored chunk has the title of its document.
  chunk: [DocumentChunk.extend({ title: z.string().optional() }), chunkOf],
  conversation: [Conversation, conversationOf],
  turn: [Turn, turnOf],
  skill: [Skill, ({ body }) => skillRecord(body.value, body.taken)],
  shows: [ItemShows, ({ line, body }) => showsRecord(line.layer, body.value, body.taken)],
};

/** A note's body lacks the title and worth of its episode, so the line gives both. */
function noteRecord({ line, body }: Told): MemoryRecord | string {
  const note = body.value as EpisodeNote;
  const told = { summary: '', reflection: null, [line.kind]: note.text };
  return noteRecords({ ...note, ...told, prompt: line.title, importance: line.worth })[0] ?? 'body.value.text: is empty';
}

/** A chunk's body lacks the name of its document, so the line gives it. */
function chunkOf({ line, body }: Told): MemoryRecord | string {
  const { title = '', ...chunk } = body.value as DocumentChunk;
  const [name = ''] = line.sources;
  if (line.sources.length !== 1 || name === '' || name.length > NAME_CHARS_MAX) return 'sources: has to be the name of its document';
  return ofDigest(line, (digest) => chunkRecord({ id: chunk.documentId, name, title }, digest, chunk));
}

/** The id must follow from owner and name, because later messages find the conversation by it. */
function conversationOf({ body: { value, taken } }: Told): MemoryRecord | string {
  const conversation: Conversation = value;
  const isNamed = conversation.id === conversationId(conversation.scope, conversation.name);
  return isNamed ? conversationRecord(conversation, taken) : 'body.value.id: has to follow from owner and name';
}

function turnOf({ body: { value } }: Told): MemoryRecord | string {
  const turn: Turn = value;
  return turn.id === turnKey(turn.conversation, turn.index) ? turnRecord(turn) : 'body.value.id: has to follow from conversation and index';
}

/** Checks only the form of the digest, which covers all chunks of a document. Reconciling removes chunks that don't match their document. */
function ofDigest({ fields: { digest } }: ExportLine, made: (digest: string) => MemoryRecord): MemoryRecord | string {
  return typeof digest === 'string' && DIGEST.test(digest) ? made(digest) : 'fields.digest: has to be 64 hexadecimal digits';
}

const TIMES: ReadonlySet<string> = new Set(['at', 'createdAt', 'updatedAt', 'validFrom', 'validTo']);
const DAY_MS = 86_400_000;
/** The API reports counts as 32-bit numbers. */
const COUNT_MAX = 2 ** 31 - 1;

/** Describes the first impossible number, or returns null. Times may be a day ahead, since clocks differ. `now`: ms since 1970. */
function wrongNumber(value: Readonly<Record<string, unknown>>, now: number): string | null {
  for (const [name, number] of Object.entries(value)) {
    if (typeof number !== 'number') continue;
    const isTime = TIMES.has(name);
    if (number >= 0 && number <= (isTime ? now + DAY_MS : COUNT_MAX)) continue;
    return `${name}: has to be ${isTime ? 'a time in ms since 1970, at most a day from now' : `0 to ${COUNT_MAX}`}`;
  }
  return null;
}

/** An imported skill that was neither verified nor approved in this installation. */
export interface Proposal {
  readonly skill: Skill;
  /** The reason why the skill is stored but never used; null if it will be verified. */
  readonly setAside: string | null;
}

/**
 * Registers an imported skill in the caller's name. `unchanged`: it was already there.
 *
 * @throws EtudeError PERMISSION_DENIED, FAILED_PRECONDITION or INVALID_ARGUMENT if it may not be registered; its line is then refused.
 *   ABORTED if its owner was erased (`isErased`)
 */
export type ProposeSkill = (proposal: Proposal) => Promise<'added' | 'unchanged'>;

/** Statuses of skills that aren't used where they come from: replaced, harmful, withdrawn or never good enough. */
const OUT_OF_USE: ReadonlySet<SkillStatus> = new Set(['deprecated', 'archived', 'rejected']);

export interface ToldSkill {
  readonly line: number;
  /** The skill as its line describes it, with the importing tenant as its tenant. */
  readonly told: Skill;
}

/** Sorts by key, so that versions are numbered in their old order. `isToldElsewhere`: out of use in this line, but in use in another line. */
export function inOrder(skills: readonly ToldSkill[]): ReadonlyArray<ToldSkill & { readonly isToldElsewhere: boolean }> {
  const contentOf = ({ told }: ToldSkill) => JSON.stringify([told.scope.agent, told.scope.user, told.name, skillDigest(told)]);
  const inUse = new Set(skills.filter(({ told }) => !OUT_OF_USE.has(told.status)).map(contentOf));
  const keyOf = ({ told }: ToldSkill) => skillKey({ ...told, ...told.scope });
  return skills
    .map((one) => ({ ...one, isToldElsewhere: OUT_OF_USE.has(one.told.status) && inUse.has(contentOf(one)) }))
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** The source that all skills of one import name. Revoking the source withdraws all these skills. The same skills give the same source. */
export function importOf(skills: readonly ToldSkill[]): string {
  const hash = createHash('sha256');
  for (const { told } of skills)
    hash.update(JSON.stringify([told.scope.agent, told.scope.user, told.name, told.version, skillDigest(told)]));
  return `imports/i${hash.digest('hex').slice(0, 32)}`;
}

/**
 * Makes an imported skill a candidate that was never run. Its untrusted source makes sure that a person approves it. The tasks it claims to
 * have solved are dropped, since otherwise it would be offered for such tasks.
 *
 * @param source "imports/{id}"
 */
export function proposalOf(told: Skill, source: string): Proposal {
  const { usage: _usage, history: _history, proof: _proof, contract: _contract, ...known } = told;
  const { replacedBy: _replacedBy, members: _members, ...kept } = known;
  const { status, statusReason: why } = told;
  const statusReason = `imported; was ${status} where it came from`;
  const skill = newCandidate({
    ...kept,
    at: told.createdAt,
    statusReason,
    // The history of the skill begins with this origin.
    origin: 'import',
    cues: told.examplePrompts ?? [],
    fingerprints: [],
    sources: [...new Set([...told.sources, source])],
    ...(hasHiddenTests(told) ? { hiddenTests: true } : {}),
  });
  return { skill, setAside: OUT_OF_USE.has(status) ? `${statusReason}${why === '' ? '' : `: ${why}`}` : null };
}

/** Points a skill's dependencies at the importing tenant. Dependencies on global skills stay. */
function withOwnPins(skill: Skill, tenant: string): Skill {
  if (skill.dependencies === undefined) return skill;
  const dependencies = skill.dependencies.map((pin) => (pin.tenant === GLOBAL_TENANT ? pin : { ...pin, tenant }));
  return { ...skill, dependencies };
}

/**
 * Makes a skill a candidate if it claims to be verified without a proof for its content. null if the claim holds or needs no proof.
 *
 * @param at ms since 1970
 * @param checker checks the signatures of proofs. Absent: the service that runs a skill checks them
 */
function unprovenAsCandidate(skill: Skill, at: number, checker?: ProofChecker): Skill | null {
  if (!PROVEN.has(skill.status) || isInWords(skill)) return null;
  if (checker === undefined ? isProofOf(skill, skill.proof) : isProven(skill, checker)) return null;
  const { proof: _proof, contract: _contract, history = [], status, ...kept } = skill;
  const statusReason = `imported; was ${status} where it came from, without a proof for its content`;
  const change = { at, by: 'import', from: status, to: 'candidate', reason: statusReason } as const;
  return { ...kept, status: 'candidate', statusReason, evidence: [], history: [...history, change] };
}
