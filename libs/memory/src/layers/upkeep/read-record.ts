import type { MemoryRecord, RecordKind } from '../../record-store.js';
import { RECORD_KINDS } from '../../record-store.js';
import { type ExportLine, parseJson, readLine, reasonOf } from './line-format.js';
import { storedBodyOf } from './stored-values.js';

const refused = (reason: string) => ({ body: null, reason });

interface Owned {
  readonly status?: string;
  readonly scope?: { readonly tenant: string; readonly agent: string; readonly user: string | null };
}

/**
 * A line as a record of `tenant`, whosever it was. Nothing in it is trusted: the body has to be one of its kind, and of the agent and
 * user that the line says.
 *
 * @returns why not, where it is none
 */
export function readRecord(tenant: string, text: string): { readonly record: MemoryRecord } | { readonly refused: string } {
  const read = readLine(text);
  if ('refused' in read) return read;
  const { body, reason } = ownBody(tenant, read.line);
  if (body === null) return { refused: reason };
  const { agent, user, ...record } = read.line;
  return { record: { ...record, body, scope: { tenant, agent, user } } };
}

function ownBody(tenant: string, line: ExportLine): { body: string; reason: '' } | { body: null; reason: string } {
  const kinds: readonly RecordKind[] = RECORD_KINDS[line.layer];
  if (!kinds.includes(line.kind)) return refused(`kind: ${line.kind} is no kind of the ${line.layer} layer`);
  const raw = parseJson(line.body);
  const parsed = storedBodyOf(line.kind).safeParse(raw);
  if (!parsed.success) return refused(`body.${reasonOf(parsed.error)}`);
  const { value } = raw as { value: Owned };
  if (line.kind === 'skill' && line.shown && value.status !== 'active') return refused('shown: is true for a skill that is not active');
  if (value.scope === undefined) return { body: line.body, reason: '' };
  const { scope } = value;
  if (scope.agent !== line.agent || (scope.user ?? null) !== line.user)
    return refused('body.value.scope: is of another agent or user than the line');
  if (scope.tenant === tenant) return { body: line.body, reason: '' };
  return { body: JSON.stringify({ ...(raw as object), value: { ...value, scope: { ...scope, tenant } } }), reason: '' };
}
