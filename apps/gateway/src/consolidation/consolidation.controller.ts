import { EtudeError } from '@etude/contracts/errors';
import type { Consolidation, GetConsolidationRunRequest, RunConsolidationRequest } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { ConsolidationRunJob } from '@etude/contracts/queues';
import { ConsolidationStore } from '@etude/queue/memory/consolidation-store';
import { Producer } from '@etude/queue/jobs/producer';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { contextOf } from '../calls/call-context.js';
import { consolidationRunOfName, optionalAgent, optionalRequestId } from '../wire/resource-name.js';
import { boundedCount } from '../wire/validation.js';
import { consolidationMessage } from './consolidation.mapping.js';

const DAYS = { max: 3_650, standard: 7 };

/** `etude.v1.Consolidation`. */
@Controller()
export class ConsolidationController implements GrpcController<typeof Consolidation> {
  constructor(
    private readonly runs: ConsolidationStore,
    private readonly producer: Producer,
  ) {}

  /** Record first, job second; a repeat with the same request id adds a job that got lost in between. */
  @GrpcMethod('Consolidation')
  async runConsolidation(request: RunConsolidationRequest, _metadata: Metadata, call: ServerCall) {
    const { tenant } = contextOf(call);
    const agent = optionalAgent(request.agent);
    const days = boundedCount(request.days, 'days', DAYS);
    const { dryRun } = request;
    const requestId = optionalRequestId(request.requestId) ?? '';
    const { record } = await this.runs.create(tenant, { agent, days, dryRun }, requestId);
    if (record.state === 'queued') await this.producer.add(ConsolidationRunJob, { v: 1, tenant, runId: record.id, agent, days, dryRun });
    return consolidationMessage(record);
  }

  @GrpcMethod('Consolidation')
  async getConsolidationRun({ name }: GetConsolidationRunRequest, _metadata: Metadata, call: ServerCall) {
    const record = await this.runs.get(contextOf(call).tenant, consolidationRunOfName(name));
    if (!record) throw new EtudeError('NOT_FOUND', `There is no ${name}.`, { metadata: { name } });
    return consolidationMessage(record);
  }
}
