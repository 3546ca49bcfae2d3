import { randomBytes } from 'node:crypto';
import { describe, expect } from 'vitest';
import { useSandboxes } from '../sandbox-fixture.js';
import { itInSession, type TestSession } from '../session-fixture.js';

const PIECE = 512 * 1024;
const bytes = (text: string) => Buffer.from(text);
const text = async (session: TestSession, path: string) => Buffer.from((await session.files.read(path, 0, PIECE)).data).toString();

describe('files of a session', () => {
  const it = itInSession(useSandboxes({ warm: 1 }));

  it('take 100 MiB in pieces of 512 KiB', async ({ session: { files } }) => {
    const piece = randomBytes(PIECE);
    for (let at = 0; at < 200; at++) expect(await files.write('big.bin', at * PIECE, piece, at === 199)).toBe((at + 1) * PIECE);
    expect((await files.stat('big.bin')).entry?.sizeBytes).toBe(200 * PIECE);
    expect(Buffer.from((await files.read('big.bin', 150 * PIECE, PIECE)).data).equals(piece)).toBe(true);
    expect((await files.read('big.bin', 200 * PIECE - 3, PIECE)).data).toHaveLength(3);
  });

  it('name the offset at which an upload continues, and accept its last piece twice', async ({ session: { files } }) => {
    await files.write('a', 0, bytes('one'), false);
    await expect(files.write('a', 0, bytes('one'), false)).rejects.toMatchObject({
      details: { metadata: { reason: 'offset', size: '3' } },
    });
    await expect(files.write('a', 9, bytes('x'), false)).rejects.toMatchObject({ details: { metadata: { reason: 'offset', size: '3' } } });
    expect(await files.stat('a')).toEqual({ entry: null, uploadedBytes: 3 });
    expect(await files.write('a', 3, bytes('two'), true)).toBe(6);
    expect(await files.write('a', 3, bytes('two'), true)).toBe(6);
    expect(await files.stat('a')).toMatchObject({ entry: { path: 'a', sizeBytes: 6 }, uploadedBytes: 0 });
  });

  it('drop an upload that is deleted', async ({ session: { files } }) => {
    await files.write('gone', 0, bytes('one'), false);
    await files.delete('gone');
    await expect(files.delete('gone')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await files.write('gone', 0, bytes('other'), false)).toBe(5);
  });

  it('keep the old file until the upload is final', async ({ session }) => {
    await session.files.write('f', 0, bytes('old'), true);
    await session.cell('held = open("f")');
    await session.files.write('f', 0, bytes('new'), false);
    expect(await text(session, 'f')).toBe('old');
    await session.files.write('f', 3, bytes('er'), true);
    expect(await text(session, 'f')).toBe('newer');
    expect((await session.cell('print(held.read(), open("f").read())')).stdout).toBe('old newer\n');
  });

  it.for(['', '.', '..', '/a', 'a//b', 'a/', './a', 'a/../b', 'a\0b', 'x'.repeat(513), 'y'.repeat(256)])(
    'refuse the path %j',
    async (path, { session: { files } }) => {
      const refused = { code: 'INVALID_ARGUMENT', details: { metadata: { reason: 'path' } } };
      await expect(files.write(path, 0, bytes('x'), true)).rejects.toMatchObject(refused);
      await expect(files.read(path, 0, 1)).rejects.toMatchObject(refused);
      await expect(files.stat(path)).rejects.toMatchObject(refused);
      await expect(files.delete(path)).rejects.toMatchObject(refused);
    },
  );

  it.for([
    ['a link to the environment of process 1', 'os.symlink("/proc/1/environ", "x")', 'x'],
    ['a magic link', 'os.symlink("/proc/self/root", "x")', 'x/etc/passwd'],
    ['a link among the folders', 'os.mkdir("real"); open("real/f", "w").close(); os.symlink("real", "x")', 'x/f'],
    ['a FIFO', 'os.mkfifo("x")', 'x'],
    ['a socket', 'import socket; s = socket.socket(socket.AF_UNIX); s.bind("x")', 'x'],
    ['a folder', 'os.mkdir("x")', 'x'],
    ['a file below a file', 'open("x", "w").close()', 'x/y'],
  ] as const)('are not reached through %s', async ([_name, make, path], { session }) => {
    await session.cell(`import os\n${make}`);
    const refused = { code: 'INVALID_ARGUMENT', details: { metadata: { reason: 'path' } } };
    await expect(session.files.read(path, 0, 10)).rejects.toMatchObject(refused);
    await expect(session.files.write(path, 0, bytes('mine'), true)).rejects.toMatchObject(refused);
    await expect(session.files.stat(path)).rejects.toMatchObject(refused);
    await expect(session.files.delete(path)).rejects.toMatchObject(refused);
    expect((await session.files.list('', 100)).entries.map((entry) => entry.path)).not.toContain(path);
  });

  it('refuse everything if the working directory is a link to process 1', async ({ session }) => {
    await session.cell('import os\nos.rename("/tmp/work", "/tmp/other")\nos.symlink("/proc/1", "/tmp/work")');
    const refused = { code: 'INVALID_ARGUMENT', details: { metadata: { reason: 'path' } } };
    await expect(session.files.read('environ', 0, 10)).rejects.toMatchObject(refused);
    await expect(session.files.write('oom_score_adj', 0, bytes('1000'), true)).rejects.toMatchObject(refused);
    await expect(session.files.list('', 10)).rejects.toMatchObject(refused);
  });

  it('start empty if the working directory was removed', async ({ session }) => {
    await session.command('rm -rf /tmp/work');
    expect(await session.files.list('', 10)).toEqual({ entries: [], more: false });
    await session.files.write('deep/f', 0, bytes('back'), true);
    expect((await session.command('cat deep/f')).stdout).toBe('back');
  });

  it('give the contents before or after a rename by the code, never others', async ({ session }) => {
    const race = `
import os, time
def begin():
    os.system("rm -rf a b c; mkdir a b; printf inside > a/f; ln -s /proc/1/environ b/f")
def swap():
    os.rename("a", "c"); yield
    os.symlink("/proc/1", "a"); yield
    os.unlink("a"); yield
    os.rename("b", "a"); yield
    os.rename("a", "b"); yield
    os.rename("c", "a"); yield
    os.rename("a/f", "a/g"); yield
    os.mkfifo("a/f"); yield
    os.unlink("a/f"); yield
    os.symlink("/proc/self/environ", "a/f"); yield
    os.rename("a/g", "a/f")
# The caller's own writes make folders, too.
begin()
end = time.monotonic() + 1.5
while time.monotonic() < end:
    try:
        for _ in swap(): pass
    except OSError:
        begin()`;
    let over = false;
    const racing = session.cell(race).finally(() => (over = true));
    const isOver = () => over;
    const seen = new Set<string>();
    const read = (path: string) =>
      session.files.read(path, 0, 100).then(
        ({ data }) => Buffer.from(data).toString(),
        () => 'refused',
      );
    while (!isOver()) {
      for (const path of ['a/f', 'a/environ', 'b/f']) seen.add(await read(path));
      await session.files.write('a/f', 0, bytes('inside'), true).catch(() => undefined);
    }
    expect((await racing).result.exit).toBe('ok');
    // The code creates its file empty before it writes to it.
    seen.delete('');
    expect([...seen].toSorted()).toEqual(['inside', 'refused']);
    expect(await session.files.write('after', 0, bytes('x'), true)).toBe(1);
  });

  it('restart an upload that the code removed, and accept no partial file of the code', async ({ session }) => {
    await session.files.write('f', 0, bytes('first'), false);
    const clobber = `
import glob, os
for name in glob.glob("/tmp/.*upload*"):
    os.unlink(name)
    os.symlink("/proc/1/environ", name)`;
    expect((await session.cell(clobber)).result.exit).toBe('ok');
    await expect(session.files.write('f', 5, bytes('last'), true)).rejects.toMatchObject({
      details: { metadata: { reason: 'offset', size: '0' } },
    });
    await session.files.write('f', 0, bytes('again'), true);
    expect(await text(session, 'f')).toBe('again');
  });

  it('are listed by path, in pages', async ({ session }) => {
    await session.cell(
      'import os\nfor p in ("b", "a/z", "a/b/c", "a.txt", "a-b", "é", "z"):\n    os.makedirs(os.path.dirname(p) or ".", exist_ok=True); open(p, "w").write(p)',
    );
    const paths: string[] = [];
    for (let more = true; more;) {
      const page = await session.files.list(paths.at(-1) ?? '', 2);
      paths.push(...page.entries.map(({ path }) => path));
      more = page.more;
    }
    expect(paths).toEqual(['a-b', 'a.txt', 'a/b/c', 'a/z', 'b', 'z', 'é']);
  });

  it('leave out files that no path can name', async ({ session }) => {
    await session.cell(
      'import os\nopen(b"\\xff", "w").close()\nos.makedirs("d" * 200 + "/" + "d" * 200 + "/" + "d" * 200)\nopen("d" * 200 + "/" + "d" * 200 + "/" + "d" * 200 + "/f", "w").close()\nopen("f", "w").close()',
    );
    expect((await session.files.list('', 10)).entries.map(({ path }) => path)).toEqual(['f']);
  });

  it('are listed in bounded time, however many or deep they are', async ({ session }) => {
    const many =
      'import os\nfor i in range(40000):\n    os.close(os.open("f%05d" % i, os.O_CREAT | os.O_WRONLY))\nos.mkdir("deep"); os.chdir("deep")\nfor _ in range(3000):\n    os.mkdir("d"); os.chdir("d")';
    expect((await session.cell(many)).result.exit).toBe('ok');
    const page = await session.files.list('f39000', 1_000);
    expect(page.entries).toHaveLength(999);
    const folders =
      'import os, shutil\nos.chdir("/tmp/work")\nfor n in os.listdir("."):\n    if n != "deep": os.unlink(n)\nfor i in range(20000): os.mkdir("d%05d" % i)';
    expect((await session.cell(folders)).result.exit).toBe('ok');
    await expect(session.files.list('', 10)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', details: { metadata: { reason: 'size' } } });
    expect(await session.files.write('still', 0, bytes('x'), true)).toBe(1);
  });

  it('report a full disk, and accept the rest when there is room', async ({ session }) => {
    await session.files.write('up', 0, bytes('begun'), false);
    const fill = 'try:\n    with open("fill", "wb") as f:\n        while True: f.write(bytes(1 << 20)); f.flush()\nexcept OSError: pass';
    await session.cell(fill, { fileSizeMiB: 1_000, diskMiB: 60_000 });
    const piece = randomBytes(PIECE);
    await expect(session.files.write('up', 5, piece, false)).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      details: { metadata: { reason: 'disk' } },
    });
    expect((await session.files.stat('up')).uploadedBytes).toBe(5);
    await session.files.delete('fill');
    expect(await session.files.write('up', 5, piece, true)).toBe(5 + PIECE);
  });
});
