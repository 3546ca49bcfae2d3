import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import type { DocumentSchema, MemoryRecordSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { DocumentRecord, Episode, Fact, Skill } from '@etude/contracts/memory';
import type { PlainRecord } from '@etude/memory/memory';
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
