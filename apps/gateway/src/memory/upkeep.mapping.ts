import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ErasureReceiptSchema, ReembeddingSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { ErasureReceipt, Reembedding } from '@etude/contracts/memory-upkeep';
import { timestampOf } from '../wire/duration.js';

export function erasureMessage(receipt: ErasureReceipt): MessageInitShape<typeof ErasureReceiptSchema> {
  const { id, state, removed, left, notes, error, requestedAt, finishedAt, agentDigest, userDigest } = receipt;
  return {
    id,
    state,
    removed: counts(removed),
    left: counts(left),
    notes,
    error: error ?? '',
    requestTime: timestampOf(requestedAt),
    finishTime: timestampOf(finishedAt),
    agentDigest: agentDigest ?? '',
    userDigest: userDigest ?? '',
  };
}

export function reembeddingMessage({ model, state, done, total, error }: Reembedding): MessageInitShape<typeof ReembeddingSchema> {
  return { model, state, done: BigInt(done), total: BigInt(total ?? 0), error: error ?? '' };
}

export function counts(named: Readonly<Record<string, number>>): Record<string, bigint> {
  return Object.fromEntries(Object.entries(named).map(([name, count]) => [name, BigInt(count)]));
}
