import type { JsonObject, JsonValue, MessageInitShape } from '@bufbuild/protobuf';
import type { DocumentSchema, MemoryRecordSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { isDeeper } from '@etude/contracts/json';
import type { DocumentRecord, Episode, Fact, Skill } from '@etude/contracts/memory';
import { hasHiddenTests } from '@etude/domain/skills/content-digest';
import type { PlainRecord } from '@etude/memory/memory';
import type { Role } from '@etude/platform/auth';
import { readsHiddenTests } from '../skills/skill-access.js';
import { timestampAt } from '../wire/duration.js';
import { wireFields } from './wire-fields.js';

/** Of the fields: what is in a reply must be one that every decoder of protobuf reads, whatever came in by an import. */
const FIELDS_DEPTH_MAX = 28;

export type RecordInit = MessageInitShape<typeof MemoryRecordSchema>;

export function recordMessage({ id, layer, kind, scope, createdAt, fields }: PlainRecord): RecordInit {
  return {
    id,
    layer,
    kind,
    agent: scope.agent,
    user: scope.user ?? '',
    createTime: timestampAt(createdAt),
    fields: plainJson(wireFields({ kind, fields })),
  };
}

/**
 * A record for whoever may read it: of a skill without its held-out tests, which nobody is shown, and without tests that were made from a
 * task's cases, some of which are hidden, for all but those who may read them.
 */
export function shownRecord(record: PlainRecord, roles: readonly Role[]): PlainRecord {
  if (record.kind === 'episode') return { ...record, fields: shownEpisode(record.fields as unknown as Episode, roles) };
  if (record.kind !== 'skill') return record;
  const { heldOut: _heldOut, tests, ...fields } = record.fields as unknown as Skill;
  return { ...record, fields: hasHiddenTests(fields) && !readsHiddenTests(roles, record) ? fields : { ...fields, tests } };
}

function shownEpisode({ tests = [], ...episode }: Episode, roles: readonly Role[]): Episode {
  return tests.length > 0 && readsHiddenTests(roles, episode) ? { ...episode, tests } : episode;
}

export const factMessage = (fact: Fact): RecordInit => recordMessage({ ...fact, layer: 'semantic', kind: 'fact', fields: { ...fact } });

export const episodeMessage = (episode: Episode, roles: readonly Role[]): RecordInit =>
  recordMessage({ ...episode, layer: 'episodic', kind: 'episode', fields: shownEpisode(episode, roles) });

export const procedureMessage = (skill: Skill): RecordInit =>
  recordMessage({ ...skill, id: `${skill.name}@${skill.version}`, layer: 'procedural', kind: 'skill', fields: { ...skill } });

export function documentMessage(document: DocumentRecord): MessageInitShape<typeof DocumentSchema> {
  const { id, name, title, mediaType, digest, bytes, chunks, scope, createdAt } = document;
  return {
    id,
    name,
    title,
    mediaType,
    sha256: digest,
    bytes: BigInt(bytes),
    chunks,
    agent: scope.agent,
    user: scope.user ?? '',
    createTime: timestampAt(createdAt),
  };
}

/** What JSON has no word for, such as undefined, is left out; what is nested too deep for a reply is given as its JSON in a text. */
function plainJson(value: unknown): JsonObject {
  const plain = JSON.parse(JSON.stringify(value)) as JsonObject;
  return isDeeper(plain, FIELDS_DEPTH_MAX) ? (flattened(plain, FIELDS_DEPTH_MAX) as JsonObject) : plain;
}

function flattened(value: JsonValue, levels: number): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (levels === 0) return JSON.stringify(value);
  if (Array.isArray(value)) return value.map((item) => flattened(item, levels - 1));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, flattened(item, levels - 1)]));
}
