import type { Episode, Fact, Skill } from '@etude/contracts/memory';
import type { PlainRecord } from '@etude/memory/memory';
import { snakeCase } from '../wire/field-path.js';

type Fields = PlainRecord['fields'];

/**
 * The fields of a record under the names that callers know: in snake_case, with times in RFC 3339. What a field holds is as an export
 * has it.
 */
export function wireFields({ kind, fields }: Pick<PlainRecord, 'kind' | 'fields'>): Fields {
  const named = Object.entries(knownTo(kind, fields)).map(([name, value]) => [
    snakeCase(name),
    isTime(name, value) ? rfc3339(value) : value,
  ]);
  return Object.fromEntries(named) as Fields;
}

/** Furthest from 1970 that a date can be, in ms: an import may hold any number. */
const DATE_MAX_MS = 8.64e15;

const isTime = (name: string, value: unknown): value is number =>
  /(?:At|^validFrom|^validTo)$/.test(name) && typeof value === 'number' && Math.abs(value) <= DATE_MAX_MS;

const rfc3339 = (at: number) => new Date(at).toISOString();

/** With what callers call otherwise, or look for elsewhere. */
function knownTo(kind: PlainRecord['kind'], fields: Fields): Fields {
  if (kind === 'fact') return factFields(fields as unknown as Fact);
  if (kind === 'episode') return episodeFields(fields as unknown as Episode);
  return kind === 'skill' ? skillFields(fields as unknown as Skill) : fields;
}

const factFields = ({ text, ...fact }: Fact): Fields => ({ fact: text, ...fact });

/** An episode of a rollout is told as an outside agent would have: its task, its code, and how that ended. */
function episodeFields({ experience, ...episode }: Episode): Fields {
  const { prompt, code, success, summary } = episode;
  const outcomes = [{ type: success ? 'solved' : 'action_error', summary }];
  return { ...episode, ...(experience ?? { context: [prompt], actions: code === null ? [] : [code], outcomes }) };
}

const skillFields = (skill: Skill): Fields => ({
  ...skill,
  ...(skill.kind === 'procedure' ? { prompt: skill.description } : {}),
  usageCount: skill.usage?.used ?? 0,
});
