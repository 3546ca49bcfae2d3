import { crc32 } from 'node:zlib';

/** 1980-01-01, the first day that the format knows: the same files are the same bytes. */
const DATE = 0x21;
const UTF8_NAMES = 0x0800;
const VERSION = 20;

export interface ZipEntry {
  readonly path: string;
  readonly data: Uint8Array;
}

/**
 * A ZIP archive of files as they are, not compressed, after PKWARE's APPNOTE 6.3: local headers with their data, the central
 * directory, its end. Below 4 GiB and 65,536 files.
 */
export function zipOf(entries: readonly ZipEntry[]): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const { path, data } of entries) {
    const name = Buffer.from(path, 'utf8');
    const fields = entryFields(name, data);
    const local = Buffer.concat([u32(0x04034b50), fields, name, data]);
    central.push(Buffer.concat([u32(0x02014b50), u16(VERSION), fields, u16(0), u16(0), u16(0), u32(0), u32(offset), name]));
    locals.push(local);
    offset += local.byteLength;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.concat([
    u32(0x06054b50),
    u16(0),
    u16(0),
    u16(entries.length),
    u16(entries.length),
    u32(directory.byteLength),
    u32(offset),
    u16(0),
  ]);
  return Buffer.concat([...locals, directory, end]);
}

/** What the header of a file and its entry in the directory have in common: from the version that is needed to the length of the extra field. */
function entryFields(name: Buffer, data: Uint8Array): Buffer {
  const [stored, time] = [0, 0];
  return Buffer.concat([
    u16(VERSION),
    u16(UTF8_NAMES),
    u16(stored),
    u16(time),
    u16(DATE),
    u32(crc32(data)),
    u32(data.byteLength),
    u32(data.byteLength),
    u16(name.byteLength),
    u16(0),
  ]);
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
