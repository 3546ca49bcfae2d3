import { EtudeError } from '@etude/contracts/errors';
import { ErasureReceiptSchema, type Memory as MemoryService } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { Skill } from '@etude/contracts/memory';
import type { ErasureReceipt, NamedRecord } from '@etude/contracts/memory-upkeep';
import type { Memory, PlainRecord } from '@etude/memory/memory';
import { z } from 'zod';
import { requireOwnRecord } from '../calls/roles.js';
import type { CallContext } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { askedSkills, readScope, requireAuthor, seesUsers, viewsOf, type Whose } from '../readers/readers.js';
import { toWire } from '@etude/contracts/wire/messages';
import { askedPage, optionalRequestId } from '../wire/names.js';
import { parseField } from '@etude/contracts/wire/validation';
import type { MemoryDeps } from './record-calls.js';
import { recordMessage, shownRecord } from './record-message.js';
import { recordAsked, SEARCHED } from './search-calls.js';

const PAGE = { max: 1_000, standard: 100 };
const Kind = z.enum([...SEARCHED, 'document', 'conversation']);

export const singleRecordCalls = {
  async listMemory(request, call, deps) {
    const kind = parseField(Kind, request.kind || 'fact', 'kind');
    const { category, all } = request;
    const scope = kind === 'skill' ? viewsOf(askedSkills(call, request))[0]! : readScope(call, request);
    const page = askedPage(request, PAGE, ['ListMemory', scope, kind, category, all]);
    const [at = '', key] = page.after?.split(/ (.*)/s) ?? [];
    const memory = await deps.memory.open();
    const behind = key === undefined ? {} : { after: { createdAt: Number(at), key } };
    const narrowed = { all, ...behind, ...(category === '' ? {} : { category }) };
    const { records, next } = await memory.list(scope, { kind, limit: page.pageSize, ...narrowed });
    return {
      records: records.map((record) => recordMessage(shownRecord(record, call.roles))),
      nextPageToken: page.tokenOf(next && `${next.createdAt} ${next.key}`),
    };
  },

  async deleteMemory({ requestId, id, layer, agent, user }, call, deps) {
    const asked = { id, layer, agent, user };
    const receipt = await deleteRecord({ requestId, asked }, call, deps, async (memory) =>
      nameToDelete(await recordAsked(asked, call, memory), call),
    );
    return toWire(ErasureReceiptSchema, receipt);
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;

/**
 * Erases one record: stores the erasure, then removes the record from memory. A worker removes all copies. A repeat with the same request
 * id returns the first receipt.
 *
 * @param asked the whole request; a repeat must be equal
 * @param find returns the record to delete @throws EtudeError NOT_FOUND
 */
async function deleteRecord(
  { requestId, asked }: { readonly requestId: string; readonly asked: Whose },
  call: CallContext,
  deps: MemoryDeps,
  find: (memory: Memory) => Promise<NamedRecord>,
): Promise<ErasureReceipt> {
  const { tenant } = call;
  const request = { tenant, requestId: optionalRequestId(requestId) ?? '', asked };
  const earlier = await deps.upkeep.earlierDeletion(request);
  if (earlier !== null) return earlier;
  const memory = await deps.memory.open();
  const record = await find(memory);
  const plan = await memory.upkeep.planDeletion(tenant, record);
  const reader = askedSkills(call, asked);
  const seen = plan.supported.filter(
    ({ name, ...owner }) => !name.startsWith('skills/') || seesUsers(reader, { scope: { tenant, ...owner } }),
  );
  const supported = [...new Set(seen.map(({ name }) => name))].toSorted();
  const receipt = await deps.upkeep.requestErasure(request, { record }, { ...plan, supported });
  await memory.upkeep.removeRecord(tenant, record, plan.newFrom);
  return receipt;
}

/** @throws EtudeError NOT_FOUND */
export async function deleteNamed(
  kind: 'document' | 'conversation',
  { id, requestId }: { readonly id: string; readonly requestId: string },
  call: CallContext,
  deps: MemoryDeps,
): Promise<void> {
  const asked = { [kind]: id, agent: '', user: call.user ?? '' };
  await deleteRecord({ requestId, asked }, call, deps, async (memory) => {
    const found = await memory.get(readScope(call), 'semantic', id);
    if (found?.kind === kind) return nameToDelete(found, call);
    throw new EtudeError('NOT_FOUND', `There is no ${kind} ${JSON.stringify(id)}; list the ${kind}s to see which exist.`);
  });
}

/**
 * The name that covers a record with all its parts.
 *
 * @throws EtudeError FAILED_PRECONDITION for a skill with code; PERMISSION_DENIED for a shared procedure
 */
function nameToDelete({ kind, id, scope, fields }: PlainRecord, call: CallContext): NamedRecord {
  const owner = { agent: scope.agent, user: scope.user };
  requireOwnRecord(call, owner);
  if (kind === 'skill') {
    requireDeletable(fields as unknown as Skill, call);
    return { name: `skills/${id}`, ...owner };
  }
  const { rolloutId, documentId = id, conversation = id } = fields;
  if (typeof rolloutId === 'string') return { name: `episodes/${rolloutId}`, ...owner };
  if (kind === 'turn' || kind === 'conversation') return { name: `conversations/${String(conversation)}`, ...owner };
  return { name: kind === 'fact' ? `facts/${id}` : `documents/${String(documentId)}`, ...owner };
}

function requireDeletable(skill: Skill, call: CallContext): void {
  const { name, kind, scope } = skill;
  if (kind !== 'procedure')
    throw new EtudeError('FAILED_PRECONDITION', `${name} is a skill with code, which other skills may call. A reviewer can archive it.`);
  if (scope.tenant !== call.tenant)
    throw new EtudeError('PERMISSION_DENIED', `${name} belongs to all tenants. An operator can archive it.`);
  requireAuthor(call, skill);
}
