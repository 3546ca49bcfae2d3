import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ConsolidationRecord } from '@etude/contracts/memory-upkeep';
import { EtudeError } from '@etude/contracts/errors';
import { type Consolidation, ConsolidationRunSchema } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { ConsolidationStore } from '@etude/queue/memory/consolidation-store';
import type { Handlers } from '../calls/calls.js';
import { consolidationRunOfName, optionalAgent, optionalRequestId } from '../wire/names.js';
import { toWire } from '../wire/messages.js';
import { boundedCount } from '../wire/validation.js';

const DAYS = { max: 3_650, standard: 7 };

export interface ConsolidationDeps {
  readonly runs: ConsolidationStore;
}

/** `etude.v1.Consolidation`. */
export const consolidationCalls = {
  async runConsolidation(request, call, deps) {
    const { tenant } = call;
    const agent = optionalAgent(request.agent);
    const days = boundedCount(request.days, 'days', DAYS);
    const requestId = optionalRequestId(request.requestId) ?? '';
    const { record } = await deps.runs.create(tenant, { agent, days, dryRun: request.dryRun }, requestId);
    return consolidationMessage(record);
  },

  async getConsolidationRun({ name }, call, deps) {
    const record = await deps.runs.get(call.tenant, consolidationRunOfName(name));
    if (!record) throw new EtudeError('NOT_FOUND', `There is no ${name}.`, { metadata: { name } });
    return consolidationMessage(record);
  },
} satisfies Handlers<typeof Consolidation, ConsolidationDeps>;

export function consolidationMessage(record: ConsolidationRecord): MessageInitShape<typeof ConsolidationRunSchema> {
  return toWire(ConsolidationRunSchema, { ...record, name: `consolidationRuns/${record.id}` });
}
