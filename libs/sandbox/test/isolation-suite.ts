import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LocalOptions } from '../src/local-driver.js';
import { processesWith, program, useSandboxes } from './sandbox-fixture.js';

/** Tries from inside a sandbox to break out of it. */
export function isolationSuite(options?: LocalOptions): void {
  describe('a sandbox', () => {
    const sandboxes = useSandboxes(options);
    const print = async (code: string) => {
      const result = await sandboxes.one(program(code));
      expect(result).toMatchObject({ exit: 'ok' });
      return result.stdout.trim();
    };

    it.each([
      ['TCP', 's = socket.create_connection(("1.1.1.1", 80), 2)'],
      ['UDP', 's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x", ("8.8.8.8", 53))'],
      ['names', 's = socket.getaddrinfo("example.com", 80)'],
      ['IPv6', 's = socket.create_connection(("2606:4700::1111", 80), 2)'],
      ['raw packets', 's = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'],
      ['the metadata address of a cloud', 's = socket.create_connection(("169.254.169.254", 80), 2)'],
      ['the port of the supervisor', 's = socket.create_connection(("127.0.0.1", 7070), 2)'],
      ['a local socket without a file', 's = socket.socket(socket.AF_UNIX); s.connect("\\0/tmp/.X11-unix/X0")'],
      ['the machine around it', 's = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); s.connect((2, 1))'],
    ])('reaches nothing over %s', async (_name, attempt) => {
      expect(await print(`import socket\ntry:\n    ${attempt}\n    print("reached")\nexcept OSError:\n    print("refused")`)).toBe(
        'refused',
      );
    });

    it('sees no local sockets of the host', async () => {
      const code = 'print(open("/proc/net/unix").read().count("\\n") < 8)';
      expect(await print(code)).toBe('True');
    });

    it('has no credentials of the cluster', async () => {
      const code =
        'import os\nprint(os.path.exists("/var/run/secrets"), os.path.exists("/run/secrets"), [n for n in os.environ if "KUBE" in n or "ETUDE" in n])';
      expect(await print(code)).toBe('False False []');
    });

    it('sees only its own processes', async () => {
      expect(await print('import os\nprint(max(int(n) for n in os.listdir("/proc") if n.isdigit()) < 100, os.getppid())')).toBe('True 1');
    });

    it('sees no files of the host', async () => {
      const marker = await mkdtemp(join(tmpdir(), 'etude-host-'));
      try {
        const code = `import os\nprint([p for p in (${JSON.stringify(marker)}, ${JSON.stringify(process.cwd())}, "/etc/machine-id", "/boot/config") if os.path.exists(p)])`;
        expect(await print(code)).toBe('[]');
      } finally {
        await rm(marker, { recursive: true });
      }
    });

    it('writes nowhere but to its own folders', async () => {
      const code = `
import os
own = ("/proc", "/tmp", "/dev/shm")
written = []
for mount in {line.split()[4] for line in open("/proc/self/mountinfo")}:
    for root, dirs, files in os.walk(mount):
        if root.startswith(own):
            dirs.clear()
            continue
        try:
            open(os.path.join(root, ".etude-probe"), "w").close()
            written.append(root)
        except OSError:
            pass
        if os.statvfs(root).f_flag & os.ST_RDONLY:
            dirs.clear()  # all of a mount is read-only when its top is, and what is mounted in it has its own turn
print(written)`;
      expect(await print(code)).toBe('[]');
    });

    it('has an empty environment and no privileges', async () => {
      const code =
        'import os\nstatus = open("/proc/self/status").read()\nprint(dict(os.environ), os.getuid() != 0, "CapEff:\\t0000000000000000" in status, "NoNewPrivs:\\t1" in status, "Seccomp:\\t2" in status)';
      expect(await print(code)).toBe('{} True True True True');
    });

    it('can not watch the use of files that it shares with the host', async () => {
      const code = `
import ctypes, fcntl, os
libc = ctypes.CDLL(None)
print(libc.inotify_init(), libc.inotify_init1(0), libc.fanotify_init(0, 0))
try:
    print(fcntl.fcntl(os.open("/usr/bin", 0), 1026, 0x3f))
except PermissionError:
    print("refused")`;
      expect(await print(code)).toBe('-1 -1 -1\nrefused');
    });

    it('shares no terminal with another sandbox', async () => {
      const names = 'print([name for name in os.listdir("/dev/pts") if name.isdigit()])';
      const opens = print(
        `import os, time\ntry:\n    os.openpty()\nexcept FileNotFoundError:\n    print("none")\nelse:\n    ${names}\n    time.sleep(1)`,
      );
      const looks = print(`import os, time\ntime.sleep(0.5)\n${names}`);
      expect(await looks).toBe('[]');
      // Only sandboxes of a nest have terminals.
      expect(["['0']", 'none']).toContain(await opens);
    });

    it('opens no further namespaces and mounts nothing', async () => {
      const code = `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000), libc.unshare(0x00020000), libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), libc.syscall(250, 0, 0, 0, 0, 0))`;
      expect(await print(code)).toBe('-1 -1 -1 -1');
    });

    it('can not read or stop its supervisor', async () => {
      const code = `
import os, signal
def tried(attempt):
    try:
        return attempt()
    except OSError as error:
        return type(error).__name__
print(tried(lambda: os.listdir("/proc/1/fd")), tried(lambda: open("/proc/1/mem")), tried(lambda: open("/proc/1/environ").read()))
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE):
    tried(lambda: os.kill(1, number))
print("alive")`;
      expect(await print(code)).toBe('PermissionError PermissionError PermissionError\nalive');
    });

    it('holds only its own three descriptors', async () => {
      expect(await print('import os\nprint(sorted(int(n) for n in os.listdir("/proc/self/fd"))[:4])')).toBe('[0, 1, 2, 3]');
      expect(await print('import os\nprint([os.readlink("/proc/self/fd/%d" % n).split(":")[0] for n in (0, 1, 2)])')).toBe(
        "['/memfd', 'pipe', 'pipe']",
      );
    });

    it('does not outlive its execution', async () => {
      const marker = `etude-${process.pid}-${Math.random().toString(36).slice(2)}`;
      await sandboxes.one(
        program(
          `import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    os.execv("/usr/bin/python3", ["python3", "-c", "import time; time.sleep(600)", "${marker}"])\ntime.sleep(0.2)`,
        ),
      );
      await expect.poll(() => processesWith(marker)).toEqual([]);
    });
  });
}
