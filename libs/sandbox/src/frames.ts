/** Longest frame that is read; the supervisor has the same limit. */
const FRAME_BYTES_MAX = 256 * 1024 * 1024;

/** Four bytes of length, big endian, then one JSON document in UTF-8. */
export function encodeFrame(document: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(document));
  const frame = Buffer.allocUnsafe(4 + body.length);
  frame.writeUInt32BE(body.length, 0);
  body.copy(frame, 4);
  return frame;
}

/** Cuts a byte stream into frames. */
export class FrameReader {
  private chunks: Buffer[] = [];
  private size = 0;

  /** @throws Error on a frame that is too long or is no JSON */
  feed(chunk: Buffer): unknown[] {
    this.chunks.push(chunk);
    this.size += chunk.length;
    const documents: unknown[] = [];
    for (let body = this.next(); body !== null; body = this.next()) documents.push(JSON.parse(body.toString('utf8')));
    return documents;
  }

  private next(): Buffer | null {
    if (this.size < 4) return null;
    const length = this.join(4).readUInt32BE(0);
    if (length > FRAME_BYTES_MAX) throw new Error(`a frame of ${length} bytes is over the limit of ${FRAME_BYTES_MAX}`);
    if (this.size < 4 + length) return null;
    const all = this.join(4 + length);
    const rest = all.subarray(4 + length);
    this.chunks = rest.length > 0 ? [rest, ...this.chunks.slice(1)] : this.chunks.slice(1);
    this.size -= 4 + length;
    return all.subarray(4, 4 + length);
  }

  /** The first chunk, after making it at least `bytes` long. */
  private join(bytes: number): Buffer {
    if ((this.chunks[0]?.length ?? 0) < bytes) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0] as Buffer;
  }
}
