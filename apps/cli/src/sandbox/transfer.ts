import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { type SandboxFile, SandboxFileSchema } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { FILE_CHUNK_BYTES_MAX } from '@etude/contracts/sandbox-session';
import { status } from '@grpc/grpc-js';
import { awayText, callSettings, RideOut, sayingHowToGoOn } from '../calls.js';
import { type Cli, commandLine, type Gateway, withGateway } from '../cli.js';
import { CliError, EXIT, isServiceError } from '../errors.js';
import { openPart, type PartFile, sizeOf } from '../files.js';
import { show } from '../show.js';
import { bytesText } from './execution.js';

interface Place {
  readonly name: string;
  readonly path: string;
}

const rideOut = ({ signal, out }: Cli) => new RideOut(signal, (error) => out.note(error ? `(cut: ${awayText(error)})` : '(going on)'));

/** Runs a transfer. @param how the command to repeat if it is interrupted */
const resumably = <T>(cli: Cli, how: string, work: () => Promise<T>): Promise<T> =>
  sayingHowToGoOn(cli, work, () => `what has arrived is kept; go on with: ${commandLine(cli, `${how} --resume`)}`);

/** How many bytes of an interrupted upload have arrived; 0 if there is no such upload. */
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
    cli.out.status(`uploading ${place.path}: ${bytesText(sent)} of ${bytesText(total)}`);
  }
}

/** Uploads a file. Without `resume` the first try starts at byte 0, because what arrived before may belong to another file. */
async function send(cli: Cli, gateway: Gateway, file: string, place: Place, resume: boolean): Promise<SandboxFile> {
  const total = sizeOf(file);
  const ride = rideOut(cli);
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

export function uploadFile(cli: Cli, { name, path = '' }: { name: string; path?: string | undefined }, file: string, resume: boolean) {
  sizeOf(file);
  const place = { name, path: path || basename(file) };
  return withGateway(cli, async (gateway) => {
    const work = () => send(cli, gateway, file, place, resume);
    const there = await resumably(cli, `sandbox upload ${name} ${file} ${place.path}`, work);
    show(cli.out, SandboxFileSchema, there, `${place.path}  ${bytesText(Number(there.sizeBytes))}`);
    return EXIT.ok;
  });
}

type Sink = Pick<PartFile, 'offset' | 'write' | 'finish'>;

const STDOUT: Sink = {
  offset: 0,
  write: async (chunk) => void (process.stdout.write(chunk) || (await once(process.stdout, 'drain'))),
  finish: () => Promise.resolve(),
};

async function receive(cli: Cli, gateway: Gateway, place: Place, sink: Sink): Promise<number> {
  const ride = rideOut(cli);
  for (let at = sink.offset; ;) {
    try {
      for await (const { chunk, sizeBytes } of gateway.sandboxes.downloadFile({ ...place, offset: BigInt(at) }, { signal: cli.signal })) {
        ride.works();
        await sink.write(chunk);
        at += chunk.byteLength;
        cli.out.status(`downloading ${place.path}: ${bytesText(at)} of ${bytesText(Number(sizeBytes))}`);
      }
      await sink.finish();
      return at;
    } catch (error) {
      await ride.wait(error);
    }
  }
}

/** @param file `-` is stdout; the default is the last part of the path */
export function downloadFile(cli: Cli, place: Place, file: string | undefined, resume: boolean): Promise<number> {
  const { path } = place;
  const target = file ?? basename(path);
  return withGateway(cli, async (gateway) => {
    // Asked first, so that a wrong path leaves no local file behind.
    const { sizeBytes } = await gateway.sandboxes.getSandboxFile(place, callSettings(cli));
    if (target === '-') return receive(cli, gateway, place, STDOUT).then(() => EXIT.ok);
    const sink = await openPart(target, resume);
    if (sink.offset > sizeBytes)
      throw new CliError(EXIT.usage, `${target}.part has ${sink.offset} bytes, but ${path} only ${sizeBytes}: it belongs to another file`);
    const work = () => receive(cli, gateway, place, sink);
    const bytes = await resumably(cli, `sandbox download ${place.name} ${path} ${target}`, work);
    cli.out.data({ path, file: target, sizeBytes: bytes }, `${target}  ${bytesText(bytes)}`);
    return EXIT.ok;
  });
}
