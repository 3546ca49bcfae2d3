import type {
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  SubmitTaskRequest,
  Tasks,
  WaitTaskRequest,
  WatchTaskRequest,
} from '@etude/contracts/gen/etude/v1/tasks_pb';
import { EtudeError } from '@etude/contracts/errors';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import type { TaskRecord } from '@etude/contracts/task';
import { TaskStore } from '@etude/queue/tasks/task-store';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { contextOf } from '../calls/call-context.js';
import { pacedStream } from '../calls/paced-stream.js';
import { WaitsOnly } from '../calls/tenant-calls.interceptor.js';
import { afterPageToken, pageToken } from '../wire/page-token.js';
import { optionalRequestId, taskIdOfName } from '../wire/resource-name.js';
import { eventIdOf } from '../wire/resume-token.js';
import { boundedCount } from '../wire/validation.js';
import { taskFilterOf } from './task-filter.mapping.js';
import { taskSpecOf } from './task-spec.mapping.js';
import { TaskWatcher } from './task-watcher.js';
import { taskMessage } from './task.mapping.js';
import { waitMs } from './wait-timeout.js';

const PAGE = { max: 1_000, standard: 50 };

/** `etude.v1.Tasks`. Every lookup is by the caller's tenant, so another tenant's task is not found. */
@Controller()
export class TasksController implements GrpcController<typeof Tasks> {
  constructor(
    private readonly tasks: TaskStore,
    private readonly watcher: TaskWatcher,
  ) {}

  @GrpcMethod('Tasks')
  async submitTask(request: SubmitTaskRequest, _metadata: Metadata, call: ServerCall) {
    const requestId = optionalRequestId(request.requestId) ?? '';
    const spec = taskSpecOf(request.spec);
    const { record } = await this.tasks.submit(contextOf(call).tenant, spec, requestId);
    return taskMessage(record);
  }

  @GrpcMethod('Tasks')
  async getTask({ name }: GetTaskRequest, _metadata: Metadata, call: ServerCall) {
    const taskId = taskIdOfName(name);
    return taskMessage(found(await this.tasks.get(contextOf(call).tenant, taskId), name));
  }

  @GrpcMethod('Tasks')
  async listTasks(request: ListTasksRequest, _metadata: Metadata, call: ServerCall) {
    const { tenant } = contextOf(call);
    const pageSize = boundedCount(request.pageSize, 'page_size', PAGE);
    const filter = taskFilterOf(request);
    const bound = ['ListTasks', tenant, filter];
    const after = afterPageToken(request.pageToken, bound) ?? undefined;
    const { records, nextAfter } = await this.tasks.list(tenant, { ...filter, pageSize, after });
    return { tasks: records.map(taskMessage), nextPageToken: pageToken(nextAfter, bound) };
  }

  /** The same outcome however often it is called, so the request id needs no memory. */
  @GrpcMethod('Tasks')
  async cancelTask({ name, requestId }: CancelTaskRequest, _metadata: Metadata, call: ServerCall) {
    optionalRequestId(requestId);
    const taskId = taskIdOfName(name);
    return taskMessage(found(await this.tasks.requestCancel(contextOf(call).tenant, taskId), name));
  }

  @WaitsOnly()
  @GrpcMethod('Tasks')
  async waitTask({ name, timeout }: WaitTaskRequest, _metadata: Metadata, call: ServerCall) {
    const { tenant, signal, deadlineMs } = contextOf(call);
    const taskId = taskIdOfName(name);
    const withinMs = waitMs(timeout, deadlineMs - Date.now());
    return taskMessage(found(await this.watcher.waitUntilFinal(tenant, taskId, withinMs, signal), name));
  }

  @GrpcMethod('Tasks')
  async watchTask({ name, resumeToken }: WatchTaskRequest, _metadata: Metadata, call: ServerCall) {
    const { tenant, signal } = contextOf(call);
    const taskId = taskIdOfName(name);
    const after = eventIdOf(resumeToken, taskId);
    found(await this.tasks.get(tenant, taskId), name);
    return pacedStream(call, this.watcher.watch(tenant, taskId, after, signal), signal);
  }
}

function found(record: TaskRecord | null, name: string): TaskRecord {
  if (record) return record;
  throw new EtudeError('NOT_FOUND', `There is no ${name}. It may have belonged to another key, or ended longer ago than tasks are kept.`, {
    metadata: { name },
  });
}
