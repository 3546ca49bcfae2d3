import type { MessageInitShape } from '@bufbuild/protobuf';
import { DocumentSchema, MemoryRecordSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { DocumentRecord, Episode, Fact, Skill } from '@etude/contracts/memory';
import { hasHiddenTests } from '@etude/domain/skills/content-digest';
import type { PlainRecord } from '@etude/memory/memory';
import type { Role } from '@etude/platform/auth';
import { readsHiddenTests } from '../readers/readers.js';
import { plainJson } from '../wire/outcomes.js';
import { toWire } from '@etude/contracts/wire/messages';
import { snakeCase } from '@etude/contracts/wire/validation';

type RecordInit = MessageInitShape<typeof MemoryRecordSchema>;

export function recordMessage({ id, layer, kind, scope, createdAt, fields }: PlainRecord): RecordInit {
  const { agent, user } = scope;
  return toWire(MemoryRecordSchema, { id, layer, kind, agent, user, createdAt, fields: plainJson(wireFields({ kind, fields })) });
}

/**
 * A record as a caller may see it. The held-out tests of skills are never shown.
 * Tests made from the cases of tasks need a role, since some cases are hidden.
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

export const documentMessage = (document: DocumentRecord): MessageInitShape<typeof DocumentSchema> =>
  toWire(DocumentSchema, { ...document, ...document.scope, sha256: document.digest });

type Fields = PlainRecord['fields'];

/** The fields of a record as callers see them: names in snake_case, times in RFC 3339, other values as in an export. */
export function wireFields({ kind, fields }: Pick<PlainRecord, 'kind' | 'fields'>): Fields {
  const named = Object.entries(callerFields(kind, fields)).map(([name, value]) => [
    snakeCase(name),
    isTime(name, value) ? rfc3339(value) : value,
  ]);
  return Object.fromEntries(named) as Fields;
}

const isTime = (name: string, value: unknown): value is number => /(?:At|^at|^validFrom|^validTo)$/.test(name) && typeof value === 'number';

const rfc3339 = (at: number) => new Date(at).toISOString();

function callerFields(kind: PlainRecord['kind'], fields: Fields): Fields {
  if (kind === 'fact') {
    const { text, ...fact } = fields;
    return { fact: text, ...fact };
  }
  if (kind === 'episode') return episodeFields(fields as unknown as Episode);
  if (kind !== 'skill') return fields;
  const { kind: form, description, usage } = fields as unknown as Skill;
  return { ...fields, ...(form === 'procedure' ? { prompt: description } : {}), usageCount: usage?.used ?? 0 };
}

/** Shows an episode of a rollout like an episode of an outside agent: with task, code and outcome. */
function episodeFields({ experience, ...episode }: Episode): Fields {
  const { prompt, code, success, summary } = episode;
  const outcomes = [{ type: success ? 'solved' : 'action_error', summary }];
  return { ...episode, ...(experience ?? { context: [prompt], actions: code === null ? [] : [code], outcomes }) };
}
