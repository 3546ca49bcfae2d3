import { EtudeError } from '@etude/contracts/errors';
import type {
  DeleteDocumentRequest,
  ImportDocumentRequest,
  ListDocumentsRequest,
  Memory as MemoryService,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod, GrpcStreamMethod } from '@nestjs/microservices';
import { contextOf } from '../calls/call-context.js';
import type { RequestStream } from '../calls/request-stream.js';
import { afterPageToken, pageToken } from '../wire/page-token.js';
import { optionalRequestId } from '../wire/resource-name.js';
import { boundedCount } from '../wire/validation.js';
import { importDocument, readHead } from './import-document.js';
import { MemoryAccess } from './memory-access.js';
import { documentMessage } from './memory-record.mapping.js';
import { ownScope, readScope } from './memory-scope.js';

type Methods = 'listDocuments' | 'deleteDocument';

const PAGE = { max: 1_000, standard: 100 };

/** Documents of `etude.v1.Memory`: imported, listed, deleted. */
@Controller()
export class DocumentsController implements Pick<GrpcController<typeof MemoryService>, Methods> {
  constructor(private readonly access: MemoryAccess) {}

  @GrpcStreamMethod('Memory')
  async importDocument(requests: RequestStream<ImportDocumentRequest>, _metadata: Metadata, call: ServerCall) {
    const { head, data } = await readHead(requests);
    const input = { head, data, scope: ownScope(call, head), at: Date.now() };
    const { document, outcome } = await importDocument(input, await this.access.open(), contextOf(call).signal);
    return { document: documentMessage(document), outcome };
  }

  @GrpcMethod('Memory')
  async listDocuments(request: ListDocumentsRequest, _metadata: Metadata, call: ServerCall) {
    const scope = readScope(call, request);
    const pageSize = boundedCount(request.pageSize, 'page_size', PAGE);
    const bound = ['ListDocuments', scope];
    const afterKey = afterPageToken(request.pageToken, bound);
    const { semantic } = await this.access.open();
    // One more than asked for tells whether a page follows.
    const found = await semantic.documents(scope, { limit: pageSize + 1, ...(afterKey === null ? {} : { afterKey }) });
    const page = found.slice(0, pageSize);
    return {
      documents: page.map(documentMessage),
      nextPageToken: pageToken(found.length > pageSize ? (page.at(-1)?.id ?? null) : null, bound),
    };
  }

  @GrpcMethod('Memory')
  async deleteDocument({ id, requestId }: DeleteDocumentRequest, _metadata: Metadata, call: ServerCall) {
    optionalRequestId(requestId);
    const { semantic } = await this.access.open();
    if (!(await semantic.removeDocument(readScope(call), id))) {
      throw new EtudeError('NOT_FOUND', `There is no document ${JSON.stringify(id)}; list the documents to see which there are.`);
    }
    return {};
  }
}
