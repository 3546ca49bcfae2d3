import { createConnection } from 'node:net';
import { type Answered, type EmbeddingStatus, onFrames, sendFrame } from '@etude/contracts/embedding-socket';

const TIMEOUT_MS = 2_000;

/** Asks the embedding process behind a socket about itself. @throws Error where none answers within 2 s */
export async function embeddingStatus(path: string): Promise<EmbeddingStatus> {
  const socket = createConnection({ path, signal: AbortSignal.timeout(TIMEOUT_MS) });
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  socket.on('error', reject).once('close', () => reject(new Error('the embedding process closed the connection')));
  onFrames<Answered>(socket, ({ head }) => resolve(head));
  sendFrame(socket, { id: 0, status: true });
  try {
    const { status } = await promise;
    if (status === undefined) throw new Error('the embedding process gave no status');
    return status;
  } finally {
    socket.destroy();
  }
}
