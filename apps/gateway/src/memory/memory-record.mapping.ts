import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import type { DocumentSchema, MemoryRecordSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { DocumentRecord, Episode, Fact, Skill } from '@etude/contracts/memory';
import { hasHiddenTests } from '@etude/domain/skills/life/hidden-tests';
import type { PlainRecord } from '@etude/memory/memory';
import { hasRole, type Role } from '@etude/platform/auth';
import { timestampAt } from '../wire/duration.js';

export type RecordInit = MessageInitShape<typeof MemoryRecordSchema>;

export function recordMessage({ id, layer, kind, scope, createdAt, fields }: PlainRecord): RecordInit {
  return {
    id,
    layer,
    kind,
    agent: scope.agent,
    user: scope.user ?? '',
    createTime: timestampAt(createdAt),
    fields: plainJson(fields),
  };
}

/**
 * A record for whoever may read it: of a skill without its held-out tests, which nobody is shown, and without tests that were made from a
 * task's cases, some of which are hidden, for all but reviewers.
 */
export function shownRecord(record: PlainRecord, roles: readonly Role[]): PlainRecord {
  if (record.kind !== 'skill') return record;
  const { heldOut: _heldOut, tests, ...fields } = record.fields as unknown as Skill;
  return { ...record, fields: hasHiddenTests(fields) && !hasRole(roles, 'reviewer') ? fields : { ...fields, tests } };
}

export const factMessage = (fact: Fact): RecordInit => recordMessage({ ...fact, layer: 'semantic', kind: 'fact', fields: { ...fact } });

export const episodeMessage = (episode: Episode): RecordInit =>
  recordMessage({ ...episode, layer: 'episodic', kind: 'episode', fields: { ...episode } });

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

/** What JSON has no word for, such as undefined, is left out. */
function plainJson(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject;
}
