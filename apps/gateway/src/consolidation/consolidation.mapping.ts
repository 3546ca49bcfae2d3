import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type ConsolidationRunSchema, ConsolidationState } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import type { ConsolidationRecord } from '@etude/contracts/consolidation';
import { timestampOf } from '../wire/duration.js';

const STATES: Readonly<Record<ConsolidationRecord['state'], ConsolidationState>> = {
  queued: ConsolidationState.QUEUED,
  running: ConsolidationState.RUNNING,
  done: ConsolidationState.DONE,
  failed: ConsolidationState.FAILED,
};

export function consolidationMessage(record: ConsolidationRecord): MessageInitShape<typeof ConsolidationRunSchema> {
  const { id, state, createdAt, endedAt, error, tenant: _tenant, agent: _agent, days: _days, ...counts } = record;
  return {
    ...counts,
    name: `consolidationRuns/${id}`,
    state: STATES[state],
    createTime: timestampFromMs(createdAt),
    endTime: timestampOf(endedAt),
    error: error ?? '',
  };
}
