import { describe, expect, it } from 'vitest';
import { call, checked, command, program, useSandboxes } from '../sandbox-fixture.js';

describe('limits', () => {
  const sandboxes = useSandboxes();

  it('stop code that uses too much CPU', async () => {
    const result = await sandboxes.one(program('while True: pass'), { cpuMs: 300, wallMs: 20_000 });
    expect(result.exit).toBe('cpu');
    expect(result.cpuMs).toBeGreaterThan(300);
    expect(result.cpuMs).toBeLessThan(3_000);
  });

  it('count the CPU of children', async () => {
    const code = 'import os\nfor _ in range(3):\n    if os.fork() == 0:\n        while True: pass\nwhile True:\n    os.wait()';
    expect(await sandboxes.one(program(code), { cpuMs: 300 })).toMatchObject({ exit: 'cpu' });
  });

  it('stop code that takes too long', async () => {
    const result = await sandboxes.one(program('import time\nprint("began", flush=True)\ntime.sleep(60)'), { wallMs: 3_000 });
    expect(result).toMatchObject({ exit: 'wall', stdout: 'began\n' });
    expect(result.wallMs).toBeGreaterThanOrEqual(3_000);
  });

  it.each([
    ['a list', 'x = []\nwhile True: x.append(bytearray(1 << 20))'],
    ['one block', 'x = bytearray(1 << 30)'],
    [
      'page tables',
      'import ctypes, mmap, time\nm = mmap.mmap(-1, 200 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)\nm.madvise(15)\nfor i in range(0, 200 << 30, 2 << 20): m[i]\ntime.sleep(20)',
    ],
    [
      'many processes',
      'import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        x = bytearray(b"x") * (50 << 20)\n        time.sleep(20)\ntime.sleep(20)',
    ],
  ])('stop code that takes too much memory: %s', async (_name, code) => {
    const result = await sandboxes.one(program(code), { memoryMiB: 128, wallMs: 60_000 });
    expect(result.exit).toBe('oom');
    expect(result.memoryPeakKiB).toBeLessThan(600 * 1024);
  });

  it('count memory that processes share only once', async () => {
    const fill =
      'import mmap, os, time\nf = os.open("/tmp/shared", os.O_RDWR | os.O_CREAT)\nos.truncate(f, 80 << 20)\nm = mmap.mmap(f, 80 << 20)\nfor i in range(0, 80 << 20, 4096): m[i] = 1\n';
    const share =
      'for _ in range(5):\n    if os.fork() == 0:\n        sum(m[i] for i in range(0, 80 << 20, 4096))\n        time.sleep(0.3)\n        os._exit(0)\ntime.sleep(0.5)';
    expect(await sandboxes.one(program(fill + share), { memoryMiB: 128, fileSizeMiB: 100 })).toMatchObject({ exit: 'ok' });
  });

  it('count all memory that code can take', async () => {
    const code =
      'import ctypes, os\ntry:\n    os.memfd_create("x")\nexcept PermissionError:\n    print("refused", ctypes.CDLL(None).syscall(447, 0))';
    expect(await sandboxes.one(program(code))).toMatchObject({ stdout: 'refused -1\n' });
    // Anonymous shared memory stays when no process maps it any more, so it is refused.
    const shared =
      'import mmap\ntry:\n    mmap.mmap(-1, 4096)\nexcept PermissionError:\n    print(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE).size)';
    expect((await sandboxes.one(program(shared))).stdout).toContain('mmap');
    // stdin is a file in memory, which must not grow. vmsplice would keep pages in a pipe that no process maps.
    const stdin = `
import ctypes, os
try:
    os.write(0, b"x")
except OSError:
    print("refused", input(), ctypes.CDLL(None).vmsplice(os.pipe()[1], None, 0, 0))`;
    expect(await sandboxes.one(program(stdin, 'given'))).toMatchObject({ stdout: 'refused given -1\n' });
  });

  it('hold for the next run even if the folders were made unreadable', async () => {
    const code =
      'import os\nfor folder in ("/dev/shm", "/tmp/work", "/tmp"):\n    try:\n        os.chmod(folder, 0)\n    except OSError:\n        pass';
    const next = program('import os\nopen("/dev/shm/f", "w")\nprint(os.listdir("/tmp"), os.listdir("."))');
    expect(await sandboxes.run([program(code), next])).toMatchObject([{ exit: 'ok' }, { exit: 'ok', stdout: "['work'] []\n" }]);
  });

  it('report exhausted memory of a call and of a check', async () => {
    const code = 'def f(x):\n    return bytearray(1 << 32)';
    expect(await sandboxes.one(call(code, [1]))).toMatchObject({ exit: 'oom', error: { type: 'MemoryError' } });
    expect(await sandboxes.one(checked(code, 'assert f(1)'))).toMatchObject({ exit: 'oom', passed: false });
  });

  it('contain a fork bomb', async () => {
    const bomb = 'import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass';
    const results = await sandboxes.run([program(bomb), program('print("after")')], { limits: { processes: 16, wallMs: 5_000 } });
    expect(['wall', 'cpu', 'pids', 'oom']).toContain(results[0]?.exit);
    expect(results[1]).toMatchObject({ exit: 'ok', stdout: 'after\n' });
  });

  it('report when no further process can start', async () => {
    const code = 'import os, time\nfor _ in range(40):\n    if os.fork() == 0:\n        time.sleep(20)\n        os._exit(0)';
    expect(await sandboxes.one(program(code), { processes: 8 })).toMatchObject({ exit: 'pids' });
    const threads = 'import threading, time\nfor _ in range(40):\n    threading.Thread(target=time.sleep, args=(20,), daemon=True).start()';
    expect(await sandboxes.one(program(threads), { processes: 8 })).toMatchObject({ exit: 'pids' });
  });

  it('stop code that fills the disk', async () => {
    const one = 'data = b"x" * (1 << 20)\nwith open("f", "wb") as f:\n    for _ in range(200): f.write(data)';
    expect(await sandboxes.one(program(one), { diskMiB: 16, fileSizeMiB: 500 })).toMatchObject({ exit: 'disk' });
    const empty = 'import os\nfor n in range(10_000_000):\n    os.close(os.open("f%d" % n, os.O_CREAT))';
    expect(await sandboxes.one(program(empty))).toMatchObject({ exit: 'disk' });
  });

  it('hold a file to its size', async () => {
    const code = 'with open("f", "wb") as f:\n    f.write(b"x" * (3 << 20))';
    expect(await sandboxes.one(program(code), { fileSizeMiB: 2 })).toMatchObject({ exit: 'disk' });
    expect(await sandboxes.one(command('dd if=/dev/zero of=f bs=1M count=3'), { fileSizeMiB: 2 })).toMatchObject({ exit: 'disk' });
  });

  it('hold the number of open files', async () => {
    const code = 'files = [open("/dev/null") for _ in range(100)]';
    const result = await sandboxes.one(program(code), { openFiles: 32 });
    expect(result).toMatchObject({ exit: 'nonzero' });
    expect(result.stderr).toContain('Too many open files');
  });

  it('stop endless output', async () => {
    const result = await sandboxes.one(program('while True: print("x" * 10000)'), { outputKiB: 16 });
    expect(result.exit).toBe('output');
    expect(result.stdout.length).toBe(16 * 1_024);
    expect(result.stdoutCutBytes).toBeGreaterThan(16 * 1_024);
  });
});
