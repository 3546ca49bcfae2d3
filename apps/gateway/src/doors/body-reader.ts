import type { IncomingMessage } from 'node:http';
import { EtudeError } from '@etude/contracts/errors';

/**
 * The parts of a body, read no faster than they are consumed.
 *
 * @throws EtudeError PAYLOAD_TOO_LARGE, at once if the announced size is too large
 */
export async function* chunksOf(request: IncomingMessage, bytesMax: number): AsyncGenerator<Buffer> {
  const tooLarge = () => new EtudeError('PAYLOAD_TOO_LARGE', `The body of this call may have ${bytesMax} bytes; send less at once.`);
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge();
  let size = 0;
  // The request stays open, so that its sender can read a refusal.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size > bytesMax) throw tooLarge();
    yield chunk;
  }
}

/** @throws EtudeError PAYLOAD_TOO_LARGE; INVALID_ARGUMENT if the body isn't UTF-8 */
export async function textOf(request: IncomingMessage, bytesMax: number): Promise<string> {
  const body = Buffer.concat(await Array.fromAsync(chunksOf(request, bytesMax)));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new EtudeError('INVALID_ARGUMENT', 'The body is not UTF-8 text.');
  }
}
