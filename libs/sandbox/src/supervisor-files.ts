import { EtudeError, type ErrorCode } from '@etude/contracts/errors';
import { FILE_CHUNK_BYTES_MAX, FoundLine, SessionFile } from '@etude/contracts/sandbox';
import { z } from 'zod';
import type { SupervisorFrame } from './frames.js';
import { type LostSandbox, type SandboxFiles, unavailable } from './sandbox-driver.js';

type Pending = PromiseWithResolvers<SupervisorFrame> & { readonly request: SupervisorFrame };

const Entry = z.object({ entry: SessionFile.nullable(), uploadedBytes: z.number().int() });
const Written = z.object({ size: z.number().int() });
const Data = z.object({ data: z.string(), sizeBytes: z.number().int() });
const Found = z.object({ lines: z.array(FoundLine), total: z.number().int() });
const Entries = z.object({ entries: z.array(SessionFile), more: z.boolean() });

/** Error codes by the `code` of a `file.failed` frame; any other is INTERNAL. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  not_found: 'NOT_FOUND',
  path: 'INVALID_ARGUMENT',
  offset: 'INVALID_ARGUMENT',
  size: 'INVALID_ARGUMENT',
  disk: 'PAYLOAD_TOO_LARGE',
};

/** The files of a sandbox over file frames. Each request has an id that its answer repeats. */
export class SupervisorFiles implements SandboxFiles {
  private readonly pending = new Map<string, Pending>();
  private asked = 0;
  private lost: LostSandbox | null = null;

  constructor(private readonly send: (frame: SupervisorFrame) => void) {}

  async write(path: string, offset: number, data: Uint8Array, final: boolean): Promise<number> {
    const body = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
    return Written.parse(await this.ask({ type: 'file.write', path, offset, data: body, final })).size;
  }

  async stat(path: string): Promise<z.infer<typeof Entry>> {
    return Entry.parse(await this.ask({ type: 'file.stat', path }));
  }

  async read(path: string, offset: number, length: number): Promise<{ data: Uint8Array; sizeBytes: number }> {
    const asked = Math.min(length, FILE_CHUNK_BYTES_MAX);
    const { data, sizeBytes } = Data.parse(await this.ask({ type: 'file.read', path, offset, length: asked }));
    return { data: Buffer.from(data, 'base64'), sizeBytes };
  }

  async list(after: string, limit: number): Promise<z.infer<typeof Entries>> {
    return Entries.parse(await this.ask({ type: 'file.list', after, limit }));
  }

  async delete(path: string): Promise<void> {
    await this.ask({ type: 'file.delete', path });
  }

  async search(text: string, limit: number): Promise<z.infer<typeof Found>> {
    return Found.parse(await this.ask({ type: 'file.search', text, limit }));
  }

  answer(frame: SupervisorFrame): void {
    const id = String(frame.requestId);
    const pending = this.pending.get(id);
    if (!pending) return;
    this.pending.delete(id);
    if (frame.type === 'file.failed') pending.reject(failure(frame));
    else pending.resolve(frame);
  }

  /** Repeats the unanswered requests on a new link. No data is written twice, because the supervisor refuses an offset that was written. */
  repeat(): void {
    for (const { request } of this.pending.values()) this.send(request);
  }

  fail(end: LostSandbox): void {
    this.lost = end;
    for (const { reject } of this.pending.values()) reject(unavailable(end.message, end.exit));
    this.pending.clear();
  }

  ask(frame: SupervisorFrame): Promise<SupervisorFrame> {
    if (this.lost) return Promise.reject(unavailable(this.lost.message, this.lost.exit));
    const requestId = `f${(this.asked += 1)}`;
    const pending = { ...Promise.withResolvers<SupervisorFrame>(), request: { ...frame, requestId } };
    this.pending.set(requestId, pending);
    this.send(pending.request);
    return pending.promise;
  }
}

function failure({ code, message, size }: SupervisorFrame): EtudeError {
  const known = CODES[String(code)] ?? 'INTERNAL';
  return new EtudeError(known, String(message), {
    ...(known === 'INVALID_ARGUMENT' ? { field: code === 'offset' ? 'offset' : 'path' } : {}),
    metadata: { reason: String(code), ...(typeof size === 'number' ? { size: String(size) } : {}) },
  });
}
