import type { ListDeadLettersRequest, ListQueuesRequest, Queues, RedriveDeadLettersRequest } from '@etude/contracts/gen/etude/v1/queues_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { DeadLetters } from '@etude/queue/jobs/dead-letters';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { NeedsRole } from '../calls/call.guard.js';
import { afterPageToken, pageToken } from '../wire/page-token.js';
import { boundedCount, invalidField } from '../wire/validation.js';
import { deadLetterMessage, queueMessage, queueName } from './queues.mapping.js';

const PAGE = { max: 1_000, standard: 50 };
const IDS_MAX = 1_000;

/** `etude.v1.Queues`, across tenants, hence for operators only. */
@Controller()
@NeedsRole('operator')
export class QueuesController implements GrpcController<typeof Queues> {
  constructor(private readonly dead: DeadLetters) {}

  @GrpcMethod('Queues')
  async listQueues(_request: ListQueuesRequest, _metadata: Metadata, _call: ServerCall) {
    return { queues: (await this.dead.queues()).map(queueMessage) };
  }

  @GrpcMethod('Queues')
  async listDeadLetters(request: ListDeadLettersRequest, _metadata: Metadata, _call: ServerCall) {
    const queue = queueName(request.queue);
    const pageSize = boundedCount(request.pageSize, 'page_size', PAGE);
    const bound = ['ListDeadLetters', queue];
    const after = afterPageToken(request.pageToken, bound) ?? undefined;
    const { letters, next } = await this.dead.list(queue, { pageSize, after });
    return { deadLetters: letters.map(deadLetterMessage), nextPageToken: pageToken(next, bound) };
  }

  @GrpcMethod('Queues')
  async redriveDeadLetters(request: RedriveDeadLettersRequest, _metadata: Metadata, _call: ServerCall) {
    const queue = queueName(request.queue);
    const { ids, all } = request;
    if (all === ids.length > 0) throw invalidField('ids', 'name the dead letters to redrive, or set `all` and name none');
    if (ids.length > IDS_MAX) throw invalidField('ids', `must not have more than ${IDS_MAX} entries; it has ${ids.length}`);
    const { redriven, refused } = await this.dead.redrive(queue, all ? { all } : { ids: [...new Set(ids)] });
    return { redriven, refused: [...refused] };
  }
}
