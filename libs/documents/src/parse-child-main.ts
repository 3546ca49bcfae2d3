import { errorCode, type ErrorCode } from '@etude/contracts/errors';
import type { MediaType, ParsedDocument } from './document.js';
import { parseDocument } from './parse-document.js';

export interface ChildTask {
  readonly bytes: Uint8Array;
  readonly mediaType: MediaType;
  readonly name: string;
}

export type ChildAnswer =
  | { readonly document: ParsedDocument }
  | { readonly error: { readonly code: ErrorCode; readonly message: string } };

async function answerTo({ bytes, mediaType, name }: ChildTask): Promise<ChildAnswer> {
  try {
    return { document: await parseDocument(bytes, mediaType, name) };
  } catch (error) {
    return { error: { code: errorCode(error), message: error instanceof Error ? error.message : String(error) } };
  }
}

// The parent ends this process. An exit here could lose the answer.
process.once('message', (task) => void answerTo(task as ChildTask).then((answer) => process.send?.(answer)));
process.once('disconnect', () => process.exit(0));
