import { once } from 'node:events';
import { createReadStream, createWriteStream, existsSync, renameSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { toJson } from '@bufbuild/protobuf';
import { type SandboxFile, SandboxFileSchema } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { FILE_CHUNK_BYTES_MAX } from '@etude/contracts/sandbox-session';
import { status } from '@grpc/grpc-js';
import { awayText, callSettings, RideOut } from '../calls.js';
import { type Cli, commandLine, type Gateway, withGateway } from '../cli.js';
import { CliError, EXIT, isCancelled, isServiceError, isUnavailable } from '../errors.js';
import { sizeOf } from '../files.js';
import { bytesText } from './sandbox-lines.js';

interface Place {
  readonly name: string;
  readonly path: string;
}

const awayNote = (cli: Cli) => (error: Error | null) => cli.out.note(error ? `(cut: ${awayText(error)})` : '(going on)');

/** Going on later can help: it was cut, and not refused. */
const wasCut = (cli: Cli, error: unknown) => cli.signal.aborted || isUnavailable(error) || isCancelled(error);

function progress(cli: Cli, verb: string, path: string, bytes: number, total: number): void {
  const percent = total > 0 ? ` (${Math.floor((bytes / total) * 100)} %)` : '';
  cli.out.status(`${verb} ${path}: ${bytesText(bytes)} of ${bytesText(total)}${percent}`);
}

/** How far an upload has come that was cut; 0 where there is none. */
async function arrivedBytes(cli: Cli, gateway: Gateway, place: Place): Promise<number> {
  try {
    return Number((await gateway.sandboxes.getSandboxFile(place, callSettings(cli))).uploadedBytes);
  } catch (error) {
    if (isServiceError(error) && error.code === status.NOT_FOUND) return 0;
    throw error;
  }
}

async function* parts(cli: Cli, file: string, place: Place, offset: number, total: number) {
  yield { part: { case: 'header' as const, value: { ...place, offset: BigInt(offset), sizeBytes: BigInt(total) } } };
  let sent = offset;
  for await (const chunk of createReadStream(file, { start: offset, highWaterMark: FILE_CHUNK_BYTES_MAX })) {
    yield { part: { case: 'chunk' as const, value: chunk as Uint8Array } };
    sent += (chunk as Uint8Array).byteLength;
    progress(cli, 'uploading', place.path, sent, total);
  }
}

/** Starts at what arrived before only where that is asked for: it may be of another file. */
async function send(cli: Cli, gateway: Gateway, file: string, place: Place, resume: boolean): Promise<SandboxFile> {
  const total = sizeOf(file);
  const ride = new RideOut(cli.signal, awayNote(cli));
  for (let goesOn = resume; ; goesOn = true) {
    try {
      const offset = goesOn ? await arrivedBytes(cli, gateway, place) : 0;
      ride.works();
      return await gateway.sandboxes.uploadFile(parts(cli, file, place, Math.min(offset, total), total), { signal: cli.signal });
    } catch (error) {
      await ride.wait(error);
    }
  }
}

export function uploadFile(cli: Cli, { name, path = '' }: Partial<Place>, file: string, resume: boolean): Promise<number> {
  sizeOf(file);
  const place = { name: name ?? '', path: path || basename(file) };
  return withGateway(cli, async (gateway) => {
    try {
      const there = await send(cli, gateway, file, place, resume);
      cli.out.data(toJson(SandboxFileSchema, there), `${place.path}  ${bytesText(Number(there.sizeBytes))}`);
      return EXIT.ok;
    } catch (error) {
      const again = commandLine(cli, `sandbox upload ${place.name} ${file} ${place.path} --resume`);
      if (wasCut(cli, error)) cli.out.note(`what has arrived is kept; go on with: ${again}`);
      throw error;
    } finally {
      cli.out.status('');
    }
  });
}

/** Writes a download; says how far it has come. */
interface Sink {
  readonly offset: number;
  write(chunk: Uint8Array): Promise<void>;
  /** Puts it in its place. */
  finish(): Promise<void>;
}

async function writeAll(stream: NodeJS.WritableStream, chunk: Uint8Array): Promise<void> {
  if (!stream.write(chunk)) await once(stream, 'drain');
}

function stdoutSink(): Sink {
  return { offset: 0, write: (chunk) => writeAll(process.stdout, chunk), finish: () => Promise.resolve() };
}

/** Into `FILE.part` until it is whole. @throws CliError where that can't be written, or can't be the beginning of a file of `sizeBytes` */
async function fileSink(file: string, resume: boolean, sizeBytes: number): Promise<Sink> {
  const part = `${file}.part`;
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) throw new CliError(EXIT.usage, `${file} is a folder; name a file in it`);
  const offset = resume && existsSync(part) ? statSync(part).size : 0;
  if (offset > sizeBytes)
    throw new CliError(EXIT.usage, `${part} has ${offset} bytes, and what it is to become only ${sizeBytes}; it is of another file`, [
      'without --resume it is downloaded from its beginning',
    ]);
  const stream = createWriteStream(part, offset > 0 ? { flags: 'a' } : {});
  try {
    await once(stream, 'open');
  } catch (error) {
    throw new CliError(EXIT.usage, `${part} can't be written: ${(error as Error).message}`, [], { cause: error });
  }
  return {
    offset,
    write: (chunk) => writeAll(stream, chunk),
    async finish() {
      stream.end();
      await once(stream, 'finish');
      renameSync(part, file);
    },
  };
}

async function receive(cli: Cli, gateway: Gateway, place: Place, sink: Sink): Promise<number> {
  const ride = new RideOut(cli.signal, awayNote(cli));
  for (let at = sink.offset; ;) {
    try {
      for await (const { chunk, sizeBytes } of gateway.sandboxes.downloadFile({ ...place, offset: BigInt(at) }, { signal: cli.signal })) {
        ride.works();
        await sink.write(chunk);
        at += chunk.byteLength;
        progress(cli, 'downloading', place.path, at, Number(sizeBytes));
      }
      await sink.finish();
      return at;
    } catch (error) {
      await ride.wait(error);
    }
  }
}

/** @param file `-` is stdout */
export function downloadFile(cli: Cli, place: Place, file: string | undefined, resume: boolean): Promise<number> {
  const { path } = place;
  const target = file ?? basename(path);
  return withGateway(cli, async (gateway) => {
    // Before a file is made for it.
    const { sizeBytes } = await gateway.sandboxes.getSandboxFile(place, callSettings(cli));
    const sink = target === '-' ? stdoutSink() : await fileSink(target, resume, Number(sizeBytes));
    try {
      const bytes = await receive(cli, gateway, place, sink);
      if (target !== '-') cli.out.data({ path, file: target, sizeBytes: bytes }, `${target}  ${bytesText(bytes)}`);
      return EXIT.ok;
    } catch (error) {
      const again = commandLine(cli, `sandbox download ${place.name} ${path} ${target} --resume`);
      if (target !== '-' && sizeBytes > 0n && wasCut(cli, error))
        cli.out.note(`what has arrived is in ${target}.part; go on with: ${again}`);
      throw error;
    } finally {
      cli.out.status('');
    }
  });
}
