import { EtudeError } from '@etude/contracts/errors';
import { type Consolidation, ConsolidationRunSchema } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import type { ConsolidationStore } from '@etude/queue/memory/consolidation-store';
import type { Handlers } from '../calls/calls.js';
import { toWire } from '@etude/contracts/wire/messages';
import { consolidationRunOfName, optionalAgent, optionalRequestId } from '../wire/names.js';
import { boundedCount } from '@etude/contracts/wire/validation';

const DAYS = { max: 3_650, standard: 7 };

/** `etude.v1.Consolidation`: starts runs, and shows how they are going. */
export const consolidationCalls = {
  async runConsolidation(request, call, { runs }) {
    const agent = optionalAgent(request.agent);
    const days = boundedCount(request.days, 'days', DAYS);
    const requestId = optionalRequestId(request.requestId) ?? '';
    const { record } = await runs.create(call.tenant, { agent, days, dryRun: request.dryRun }, requestId);
    return toWire(ConsolidationRunSchema, { ...record, name: `consolidationRuns/${record.id}` });
  },

  async getConsolidationRun({ name }, call, { runs }) {
    const record = await runs.get(call.tenant, consolidationRunOfName(name));
    if (!record) throw new EtudeError('NOT_FOUND', `There is no ${name}.`, { metadata: { name } });
    return toWire(ConsolidationRunSchema, { ...record, name });
  },
} satisfies Handlers<typeof Consolidation, { readonly runs: ConsolidationStore }>;
