import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { SandboxFileSchema } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { FILE_CHUNK_BYTES_MAX } from '@etude/contracts/sandbox-session';
import { ridingOut } from '../calls.js';
import { type Cli, withGateway } from '../cli.js';
import { EXIT } from '../errors.js';
import { statOf, writeWhole } from '../files.js';
import { show } from '../show.js';
import { bytesText } from './execution.js';

interface Place {
  /** Name of the sandbox. */
  readonly name: string;
  readonly path: string;
}

async function* parts(cli: Cli, file: string, place: Place, total: number) {
  yield { part: { case: 'header' as const, value: { ...place, sizeBytes: BigInt(total) } } };
  let sent = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: FILE_CHUNK_BYTES_MAX })) {
    yield { part: { case: 'chunk' as const, value: chunk as Uint8Array } };
    sent += (chunk as Uint8Array).byteLength;
    cli.out.status(`uploading ${place.path}: ${bytesText(sent)} of ${bytesText(total)}`);
  }
}

export function uploadFile(cli: Cli, name: string, file: string, path = basename(file)): Promise<number> {
  const total = statOf(file).size;
  const { signal } = cli;
  return withGateway(cli, async ({ sandboxes }) => {
    const there = await ridingOut(signal, () => sandboxes.uploadFile(parts(cli, file, { name, path }, total), { signal }));
    cli.out.status('');
    show(cli.out, SandboxFileSchema, there, `${path}  ${bytesText(Number(there.sizeBytes))}`);
    return EXIT.ok;
  });
}

/** @param file `-` is stdout; the default is the last part of the path */
export function downloadFile(cli: Cli, place: Place, file = basename(place.path)): Promise<number> {
  const { path } = place;
  return withGateway(cli, async ({ sandboxes }) => {
    let bytes = 0;
    await writeWhole(file, async (write) => {
      for await (const { chunk, sizeBytes } of sandboxes.downloadFile(place, { signal: cli.signal })) {
        await write(chunk);
        bytes += chunk.byteLength;
        cli.out.status(`downloading ${path}: ${bytesText(bytes)} of ${bytesText(Number(sizeBytes))}`);
      }
    });
    cli.out.status('');
    if (file !== '-') cli.out.data({ path, file, sizeBytes: bytes }, `${file}  ${bytesText(bytes)}`);
    return EXIT.ok;
  });
}
