import type {
  CancelExecutionRequest,
  CloseSandboxRequest,
  CreateSandboxRequest,
  DeleteSandboxFileRequest,
  DownloadFileRequest,
  ExecuteRequest,
  GetSandboxFileRequest,
  GetSandboxRequest,
  ListSandboxesRequest,
  ListSandboxFilesRequest,
  RenewSandboxRequest,
  Sandboxes,
  UploadFileRequest,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { sandboxMessage } from '@etude/contracts/sandbox-wire';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod, GrpcStreamMethod } from '@nestjs/microservices';
import { contextOf } from '../calls/call-context.js';
import { pacedStream } from '../calls/paced-stream.js';
import type { RequestStream } from '../calls/request-stream.js';
import { afterPageToken, pageToken } from '../wire/page-token.js';
import { sandboxIdOfName } from '../wire/resource-name.js';
import { boundedCount } from '../wire/validation.js';
import { followExecution } from './follow-execution.js';
import {
  checkedCreate,
  checkedExecute,
  checkedFile,
  checkedFileList,
  checkedRenew,
  checkedState,
  checkExecutionId,
} from './sandbox-requests.js';
import { SandboxRouter } from './sandbox-router.js';
import { forwardDownload, forwardUpload } from './transfer-file.js';

const PAGE = { max: 200, standard: 50 };

/**
 * `etude.v1.Sandboxes`. What is known of a sandbox is read here; everything else goes to the controller that holds it. Every lookup
 * is by the caller's tenant, so another tenant's sandbox is not found, and no controller is asked for it.
 */
@Controller()
export class SandboxesController implements Omit<GrpcController<typeof Sandboxes>, 'uploadFile'> {
  constructor(
    private readonly sessions: SandboxSessionStore,
    private readonly router: SandboxRouter,
  ) {}

  @GrpcMethod('Sandboxes')
  createSandbox(request: CreateSandboxRequest, _metadata: Metadata, call: ServerCall) {
    const checked = checkedCreate(request);
    return this.router.create(contextOf(call), (client, settings) => client.createSandbox(checked, settings));
  }

  @GrpcMethod('Sandboxes')
  async getSandbox({ name }: GetSandboxRequest, _metadata: Metadata, call: ServerCall) {
    const { session } = await this.router.session(contextOf(call).tenant, sandboxIdOfName(name));
    return sandboxMessage(session);
  }

  @GrpcMethod('Sandboxes')
  async listSandboxes(request: ListSandboxesRequest, _metadata: Metadata, call: ServerCall) {
    this.router.requireOn();
    const { tenant } = contextOf(call);
    const pageSize = boundedCount(request.pageSize, 'page_size', PAGE);
    const state = checkedState(request.state);
    const bound = ['ListSandboxes', tenant, state];
    const after = afterPageToken(request.pageToken, bound);
    const page = await this.sessions.list(tenant, { pageSize, ...(state ? { state } : {}), ...(after ? { after } : {}) });
    return { sandboxes: page.sessions.map(sandboxMessage), nextPageToken: pageToken(page.nextAfter, bound) };
  }

  @GrpcMethod('Sandboxes')
  renewSandbox(request: RenewSandboxRequest, _metadata: Metadata, call: ServerCall) {
    const id = sandboxIdOfName(request.name);
    const checked = checkedRenew(request);
    return this.router.ask(id, contextOf(call), (client, settings) => client.renewSandbox(checked, settings));
  }

  @GrpcMethod('Sandboxes')
  async closeSandbox(request: CloseSandboxRequest, _metadata: Metadata, call: ServerCall) {
    const context = contextOf(call);
    const id = sandboxIdOfName(request.name);
    const { session } = await this.router.session(context.tenant, id);
    if (session.state !== 'open') return sandboxMessage(session);
    return this.router.ask(id, context, (client, settings) => client.closeSandbox(request, settings));
  }

  @GrpcMethod('Sandboxes')
  async execute(request: ExecuteRequest, _metadata: Metadata, call: ServerCall) {
    const context = contextOf(call);
    const id = sandboxIdOfName(request.name);
    const checked = checkedExecute(request);
    await this.router.session(context.tenant, id);
    return pacedStream(call, followExecution(this.router, id, checked, context), context.signal);
  }

  @GrpcMethod('Sandboxes')
  cancelExecution(request: CancelExecutionRequest, _metadata: Metadata, call: ServerCall) {
    const id = sandboxIdOfName(request.name);
    checkExecutionId(request.executionId);
    return this.router.ask(id, contextOf(call), (client, settings) => client.cancelExecution(request, settings));
  }

  @GrpcStreamMethod('Sandboxes')
  uploadFile(requests: RequestStream<UploadFileRequest>, _metadata: Metadata, call: ServerCall) {
    return forwardUpload(this.router, requests, contextOf(call));
  }

  @GrpcMethod('Sandboxes')
  async downloadFile(request: DownloadFileRequest, _metadata: Metadata, call: ServerCall) {
    const context = contextOf(call);
    const id = checkedFile(request);
    await this.router.session(context.tenant, id);
    return pacedStream(call, forwardDownload(this.router, id, request, context), context.signal);
  }

  @GrpcMethod('Sandboxes')
  getSandboxFile(request: GetSandboxFileRequest, _metadata: Metadata, call: ServerCall) {
    const id = checkedFile(request);
    return this.router.ask(id, contextOf(call), (client, settings) => client.getSandboxFile(request, settings));
  }

  @GrpcMethod('Sandboxes')
  listSandboxFiles(request: ListSandboxFilesRequest, _metadata: Metadata, call: ServerCall) {
    const id = sandboxIdOfName(request.name);
    const checked = checkedFileList(request);
    return this.router.ask(id, contextOf(call), (client, settings) => client.listSandboxFiles(checked, settings));
  }

  @GrpcMethod('Sandboxes')
  deleteSandboxFile(request: DeleteSandboxFileRequest, _metadata: Metadata, call: ServerCall) {
    const id = checkedFile(request);
    return this.router.ask(id, contextOf(call), (client, settings) => client.deleteSandboxFile(request, settings));
  }
}
