import type {
  DownloadFileRequest,
  DownloadFileResponse,
  SandboxFile,
  UploadFileHeader,
  UploadFileRequest,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { FILE_CHUNK_BYTES_MAX } from '@etude/contracts/sandbox-session';
import type { CallContext } from '../calls/caller.js';
import { forwardedError } from '../controllers/controller-client.js';
import { forwardSettings, type SandboxRouter } from '../controllers/sandbox-router.js';
import { invalidField } from '../wire/validation.js';
import { checkedFile } from './sandbox-requests.js';

function headerOf(first: IteratorResult<UploadFileRequest>): UploadFileHeader {
  const part = first.done ? undefined : first.value.part;
  if (part?.case === 'header') return part.value;
  throw invalidField('header', 'is required in the first message of an upload');
}

function checkChunk({ part }: UploadFileRequest): void {
  if (part.case !== 'chunk') throw invalidField(part.case ?? 'part', 'must be a chunk in every message but the first');
  const bytes = part.value.byteLength;
  if (bytes > FILE_CHUNK_BYTES_MAX)
    throw invalidField('chunk', `must not have more than ${FILE_CHUNK_BYTES_MAX} bytes; it has ${bytes}. Send several`);
}

async function* parts(first: UploadFileRequest, rest: AsyncIterator<UploadFileRequest>): AsyncGenerator<UploadFileRequest> {
  yield first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    checkChunk(next.value);
    yield next.value;
  }
}

/**
 * An upload on its way to the owner of its sandbox, pulled no faster than that takes it. One that is cut is the caller's to go on
 * with: what has passed here is kept nowhere.
 *
 * @throws EtudeError INVALID_ARGUMENT; as the controller says
 */
export async function forwardUpload(
  router: SandboxRouter,
  requests: AsyncIterable<UploadFileRequest>,
  context: CallContext,
): Promise<SandboxFile> {
  const incoming = requests[Symbol.asyncIterator]();
  const first = await incoming.next();
  const header = headerOf(first);
  const id = checkedFile(header, 'header.');
  const client = await router.owner(context.tenant, id);
  try {
    return await client.uploadFile(parts(first.value as UploadFileRequest, incoming), forwardSettings(context));
  } catch (error) {
    context.signal.throwIfAborted();
    throw forwardedError(error);
  }
}

/** A download from the owner of its sandbox, or whoever takes that over: it goes on behind what has passed. */
export async function* forwardDownload(
  router: SandboxRouter,
  id: string,
  request: DownloadFileRequest,
  context: CallContext,
): AsyncGenerator<DownloadFileResponse> {
  let { offset } = request;
  for (const patience = router.patience(context.signal); ;) {
    try {
      const client = await router.owner(context.tenant, id, patience.tries);
      for await (const part of client.downloadFile({ ...request, offset }, forwardSettings(context))) {
        patience.renew();
        offset += BigInt(part.chunk.byteLength);
        yield part;
      }
      return;
    } catch (error) {
      context.signal.throwIfAborted();
      if (!(await patience.again(error))) throw forwardedError(error);
    }
  }
}
