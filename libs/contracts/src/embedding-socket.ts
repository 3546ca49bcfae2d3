/** The part of a connected socket that frames need. */
interface Line {
  on(event: 'data', take: (part: Buffer) => void): unknown;
  write(bytes: Uint8Array): unknown;
  destroy(error?: Error): unknown;
}

/** One message on the socket of an embedding process: a head as JSON, and the numbers of its vectors, one vector after the other. */
export interface Frame<Head> {
  readonly head: Head;
  readonly numbers: Float32Array<ArrayBuffer>;
}

export interface EmbeddingStatus {
  readonly pid: number;
  readonly model: string;
  /** Resident. */
  readonly memoryMiB: number;
  /** Texts since the start: all answered ones, and how many of them came from the cache. */
  readonly served: number;
  readonly cached: number;
  /** Texts of calls that aren't answered yet. */
  readonly queue: number;
}

/** From a client. `id` is the client's own. Texts are answered by vectors or an error, `cancel` by nothing. */
export type Asked =
  | { readonly id: number; readonly texts: readonly string[] }
  | { readonly id: number; readonly status: true }
  | { readonly cancel: number };
/** To a client, under the id of its question. Vectors are the numbers of the frame. */
export interface Answered {
  readonly id: number;
  readonly error?: { readonly code: string; readonly message: string };
  readonly status?: EmbeddingStatus;
}

/** The lengths of head and numbers in bytes, as two u32. */
const PREFIX_BYTES = 8;
/** Far more than the vectors or texts of one call. A longer frame comes from something else, and ends the connection. */
const FRAME_BYTES_MAX = 256 * 1024 * 1024;

/** Numbers are in the machine's byte order, because both ends are on one machine. */
export function sendFrame(socket: Line, head: Asked | Answered, vectors: readonly Float32Array[] = []): void {
  const text = Buffer.from(JSON.stringify(head));
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32LE(text.byteLength, 0);
  prefix.writeUInt32LE(
    vectors.reduce((sum, { byteLength }) => sum + byteLength, 0),
    4,
  );
  socket.write(
    Buffer.concat([prefix, text, ...vectors.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength))]),
  );
}

/** Calls `take` with each whole frame, in order. A frame that can't be read destroys the socket with an error. */
export function onFrames<Head>(socket: Line, take: (frame: Frame<Head>) => void): void {
  let parts: Buffer[] = [];
  let bytes = 0;
  let wanted = PREFIX_BYTES;
  socket.on('data', (part: Buffer) => {
    parts.push(part);
    bytes += part.byteLength;
    if (bytes < wanted) return;
    let rest = Buffer.concat(parts);
    try {
      for (wanted = wantedOf(rest); rest.byteLength >= wanted; wanted = wantedOf(rest)) {
        take(frameOf<Head>(rest));
        rest = rest.subarray(wanted);
      }
    } catch (error) {
      socket.destroy(error as Error);
    }
    parts = [rest];
    bytes = rest.byteLength;
  });
}

function wantedOf(data: Buffer): number {
  if (data.byteLength < PREFIX_BYTES) return PREFIX_BYTES;
  const bytes = PREFIX_BYTES + data.readUInt32LE(0) + data.readUInt32LE(4);
  if (bytes > FRAME_BYTES_MAX) throw new Error(`a frame of ${bytes} bytes is too long`);
  return bytes;
}

function frameOf<Head>(data: Buffer): Frame<Head> {
  const numbersAt = PREFIX_BYTES + data.readUInt32LE(0);
  const head = JSON.parse(data.toString('utf8', PREFIX_BYTES, numbersAt)) as Head;
  // Copied, because the numbers may lie at an odd place, and a view would keep the whole answer in memory.
  return { head, numbers: new Float32Array(new Uint8Array(data.subarray(numbersAt, numbersAt + data.readUInt32LE(4))).buffer) };
}
