import { gunzipSync, gzipSync } from 'node:zlib';
import { pack as tarPack } from 'tar-stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { checkPath, filesOfFolder, type FolderFile } from '../src/skill-folder/file-collector.js';
import { zipOf } from '@etude/test-support/zip';
import { type ArchiveFormat, filesOfArchive as read } from '../src/skill-folder/read-archive.js';

type TarEntry = Parameters<ReturnType<typeof tarPack>['entry']>[0] & { data?: string | Buffer };

const file = (path: string, text = path): FolderFile => ({ path, bytes: Buffer.from(text) });
const texts = (files: readonly FolderFile[]) => Object.fromEntries(files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]));

async function tarOf(entries: readonly TarEntry[]): Promise<Buffer> {
  const tar = tarPack();
  for (const { data = '', ...header } of entries) tar.entry(header, data);
  tar.finalize();
  return gzipSync(await buffer(tar));
}

/** A zip with invalid names, which replace placeholders of the same length. */
async function zipNamed(names: Readonly<Record<string, string>>, mode = 0o100644): Promise<Buffer> {
  const zip = await zipOf(
    Object.keys(names).map((path) => file(path, 'x')),
    '',
    mode,
  );
  let bytes = Buffer.from(zip).toString('latin1');
  for (const [placeholder, name] of Object.entries(names)) bytes = bytes.replaceAll(placeholder, Buffer.from(name).toString('latin1'));
  return Buffer.from(bytes, 'latin1');
}

const refusal = (code: string, message: RegExp) => expect.objectContaining({ code, message: expect.stringMatching(message) });

describe('an archive', () => {
  const files = [file('SKILL.md'), file('scripts/a.py'), file('references/ä.md')];

  it('of zip gives the files that went in', async () => {
    expect(texts(await read(await zipOf(files, 'a-skill'), 'zip'))).toEqual({
      'a-skill/SKILL.md': 'SKILL.md',
      'a-skill/scripts/a.py': 'scripts/a.py',
      'a-skill/references/ä.md': 'references/ä.md',
    });
  });

  it('of tar.gz gives the files that went in', async () => {
    const long = `${'d'.repeat(90)}/${'e'.repeat(90)}.md`;
    const tar = await tarOf([
      { name: './', type: 'directory' },
      { name: './SKILL.md', data: 'text' },
      { name: 'scripts', type: 'directory' },
      { name: long, data: 'long' },
    ]);
    expect(texts(await read(tar, 'tar.gz'))).toEqual({ 'SKILL.md': 'text', [long]: 'long' });
  });

  it('skips files of operating systems', async () => {
    const left = await read(await zipOf([file('SKILL.md'), file('__MACOSX/._SKILL.md'), file('a/.DS_Store')]), 'zip');
    expect(Object.keys(texts(left))).toEqual(['SKILL.md']);
  });
});

describe('paths', () => {
  // oxfmt-ignore
  const odd = [
    '../a', 'a/../../b', 'a/..', './a', 'a//b', '/etc/passwd', 'C:\\a', 'c:/a', 'a\\..\\b', '\\\\host\\a', 'a\0b', 'a\nb', 'a\u202Eb',
    'a\u200Bb', 'a\u007Fb', 'aux.', 'a ', 'a.', 'a/ b', 'a:stream', 'a*b', '', 'a/', 'a\uD800',
    'x'.repeat(600), 'a/'.repeat(20) + 'b',
  ];
  it.each(odd)('%j is refused', (path) => {
    expect(() => checkPath(path)).toThrow(refusal('INVALID_ARGUMENT', /rename the file/));
  });

  it.each(['SKILL.md', 'scripts/a-b_c.py', 'references/Größe und Maß.md', '.gitignore', 'console.md'])('%j is allowed', (path) => {
    expect(() => checkPath(path)).not.toThrow();
  });

  it.each([[['a', 'a']], [['a', 'A']], [['ss.md', 'ß.md']], [['a', 'a/b']], [['\u00e9', 'e\u0301']]])('%j clash', (paths) => {
    expect(() => filesOfFolder(paths.map((path) => file(path)))).toThrow(refusal('INVALID_ARGUMENT', /keep one of them/));
  });
});

const zeros = (path: string, bytes: number) => ({ path, bytes: Buffer.alloc(bytes) });

describe('a hostile zip', () => {
  it.each(['../../x', '/etc/ab', 'aa\\..\\b', 'a/../..', 'C:/xxxx', 'ab\0cdef'])('with the path %j is refused', async (path) => {
    await expect(read(await zipNamed({ QQQQQQQ: path.padEnd(7, 'z').slice(0, 7) }), 'zip')).rejects.toThrow(
      refusal('INVALID_ARGUMENT', /./),
    );
  });

  it.each([
    [0o120777, /symlink/],
    [0o060644, /device/],
  ])('with the mode %o is refused', async (mode, message) => {
    await expect(read(await zipNamed({ link: 'link' }, mode), 'zip')).rejects.toThrow(refusal('INVALID_ARGUMENT', message));
  });

  it('that is encrypted is refused', async () => {
    const bytes = Buffer.from(await zipOf([file('a')]));
    // The first bit of the flags, in both headers.
    for (const at of [6, bytes.indexOf('PK\x01\x02') + 8]) bytes.writeUInt8(bytes.readUInt8(at) | 1, at);
    await expect(read(bytes, 'zip')).rejects.toThrow(refusal('INVALID_ARGUMENT', /encrypted/));
  });

  it('that unpacks to too many bytes is refused during unpacking', async () => {
    await expect(read(await zipOf([zeros('a', 2 ** 21)]), 'zip')).rejects.toThrow(refusal('PAYLOAD_TOO_LARGE', /./));
    const many = Array.from({ length: 5 }, (_, i) => ({ path: `${i}`, bytes: noise(2 ** 20 - 1) }));
    await expect(read(await zipOf(many), 'zip')).rejects.toThrow(refusal('PAYLOAD_TOO_LARGE', /./));
  });

  it('that lies about the size of a file is refused', async () => {
    const bytes = Buffer.from(await zipOf([{ path: 'a', bytes: noise(5_000) }]));
    bytes.writeUInt32LE(10, bytes.indexOf('PK\x01\x02') + 24);
    await expect(read(bytes, 'zip')).rejects.toThrow(refusal('INVALID_ARGUMENT', /damaged/));
  });

  it('whose content was changed is refused', async () => {
    const bytes = Buffer.from(await zipOf([file('a', 'hello')]));
    bytes.writeUInt32LE(7, bytes.indexOf('PK\x01\x02') + 16);
    await expect(read(bytes, 'zip')).rejects.toThrow(refusal('INVALID_ARGUMENT', /damaged/));
  });
});

describe('a hostile tar.gz', () => {
  it.each<[string, TarEntry]>([
    ['climbs out', { name: '../x' }],
    ['is absolute', { name: '/etc/x' }],
    ['is a symbolic link', { name: 'a', type: 'symlink', linkname: '/etc/passwd' }],
    ['is a hard link', { name: 'a', type: 'link', linkname: 'SKILL.md' }],
    ['is a device', { name: 'a', type: 'block-device' }],
    ['is a folder that climbs out', { name: '../../b/', type: 'directory' }],
  ])('with an entry that %s is refused', async (_, entry) => {
    await expect(read(await tarOf([{ name: 'SKILL.md', data: 'x' }, entry]), 'tar.gz')).rejects.toThrow(refusal('INVALID_ARGUMENT', /./));
  });

  it('with an entry of an unknown type is refused', async () => {
    const tar = gunzipSync(await tarOf([{ name: 'SKILL.md', data: 'x' }]));
    tar.write('S', 156);
    tar.write('        ', 148);
    const sum = tar.subarray(0, 512).reduce((all, byte) => all + byte, 0);
    tar.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    await expect(read(gzipSync(tar), 'tar.gz')).rejects.toThrow(refusal('INVALID_ARGUMENT', /unknown type/));
  });

  it('with a sparse file is refused', async () => {
    const sparse = { name: 'SKILL.md', data: 'x', pax: { 'GNU.sparse.major': '1', 'GNU.sparse.minor': '0' } };
    await expect(read(await tarOf([sparse]), 'tar.gz')).rejects.toThrow(refusal('INVALID_ARGUMENT', /is a sparse file/));
  });

  it('that unpacks to too many bytes is refused during unpacking', async () => {
    const bomb = gzipSync(Buffer.alloc(2 ** 26));
    await expect(read(bomb, 'tar.gz')).rejects.toThrow(refusal('PAYLOAD_TOO_LARGE', /unpacks to more/));
    await expect(read(await tarOf([{ name: 'a', data: noise(2 ** 21) }]), 'tar.gz')).rejects.toThrow(
      refusal('PAYLOAD_TOO_LARGE', /exceeds the size limit/),
    );
  });
});

describe.each<[ArchiveFormat, (files: readonly FolderFile[]) => Promise<Uint8Array>]>([
  ['zip', (files) => zipOf(files)],
  ['tar.gz', (files) => tarOf(files.map(({ path, bytes }) => ({ name: path, data: Buffer.from(bytes) })))],
])('a %s', (format, pack) => {
  it('with the same path twice is refused', async () => {
    await expect(read(await pack([file('a'), file('A')]), format)).rejects.toThrow(refusal('INVALID_ARGUMENT', /same path/));
  });

  it('of too many files is refused', async () => {
    const many = Array.from({ length: 201 }, (_, i) => file(`${i}`));
    await expect(read(await pack(many), format)).rejects.toThrow(refusal('PAYLOAD_TOO_LARGE', /more than 200 files/));
  });

  it('that is not an archive, is empty or is truncated is refused', async () => {
    const whole = await pack([{ path: 'a', bytes: noise(4_000) }]);
    for (const bytes of [Buffer.from('no archive'), Buffer.alloc(0), whole.subarray(0, -10), await pack([])])
      await expect(read(bytes, format)).rejects.toThrow(refusal('INVALID_ARGUMENT', /./));
  });
});

/** Incompressible bytes, the same on each call. */
function noise(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = 1;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[i] = state >>> 16;
  }
  return bytes;
}
