import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { DeadLetterSchema, QueueSchema } from '@etude/contracts/gen/etude/v1/queues_pb';
import { QUEUES } from '@etude/contracts/queues';
import type { DeadLetter, QueueCounts } from '@etude/queue/jobs/dead-letters';
import { z } from 'zod';
import { parseField } from '../wire/validation.js';

const NAMES = QUEUES.map(({ name }) => name);
const QueueName = z.string().refine((name) => NAMES.includes(name), `must be one of ${NAMES.join(', ')}`);

/** @throws EtudeError INVALID_ARGUMENT for a queue that there isn't */
export const queueName = (name: string) => parseField(QueueName, name, 'queue');

export const queueMessage = ({ oldestWaitingMs, ...counts }: QueueCounts): MessageInitShape<typeof QueueSchema> => ({
  ...counts,
  oldestWaitingMs: BigInt(Math.max(0, Math.round(oldestWaitingMs))),
});

export function deadLetterMessage({
  queue,
  id,
  code,
  reason,
  path,
  payload,
  attempts,
  failedAt,
}: DeadLetter): MessageInitShape<typeof DeadLetterSchema> {
  return { queue, id, code, reason, path, attempts, payloadJson: JSON.stringify(payload) ?? '', failTime: timestampFromMs(failedAt) };
}
