import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, program } from './sandbox-fixture.js';
import { CLAIM, limitsOf, SupervisorProcess, type Peer } from './supervisor-fixture.js';

let supervisor: SupervisorProcess;
let peer: Peer;
beforeAll(async () => {
  supervisor = await SupervisorProcess.start();
  peer = await supervisor.bound();
});
afterAll(() => supervisor.stop());

const nextRun = () => peer.run(program('print("served")'));
const SERVED = { exit: 'ok', stdout: 'served\n' };

describe('code against its supervisor', () => {
  it.each(['SIGKILL', 'SIGSTOP', 'SIGTERM'])('sends %s to everything, and the next run goes on', async (name) => {
    const limits = limitsOf({ wallMs: 500 });
    const result = await peer.run(program(`import os, signal\nos.kill(-1, signal.${name})\nos.kill(os.getpid(), signal.${name})`), {
      limits,
    });
    expect(['ok', 'signal', 'wall']).toContain(result.exit);
    expect(await nextRun()).toMatchObject(SERVED);
  });

  it('stops the zygote repeatedly, and limits still hold', async () => {
    const code = `
import os, signal
while True:
    for pid in range(2, 40):
        try:
            os.kill(pid, signal.SIGSTOP) if pid != os.getpid() else None
        except OSError:
            pass`;
    const limits = limitsOf({ wallMs: 400 });
    expect(await peer.run(program(code), { limits })).toMatchObject({ exit: 'wall' });
    expect(await nextRun()).toMatchObject(SERVED);
  });

  it('finds every control of a pod in effect', async () => {
    const limits = limitsOf({ processes: 8, memoryMiB: 128, wallMs: 110_000 });
    const probe = readFileSync(new URL('../runner/probe.py', import.meta.url), 'utf8');
    const run = program(probe, JSON.stringify({ ...limits, pod: { internet: false } }));
    expect(await peer.run(run, { limits })).toMatchObject({ exit: 'ok', stdout: '{}\n' });
  });

  it('gives itself a name that looks like a size', async () => {
    const names = ['x kB', '5 kB', ') R 1', 'a:b'].map(
      (name) => `libc.prctl(15, ${JSON.stringify(name)}.encode(), 0, 0, 0); time.sleep(0.1)`,
    );
    const code = ['import ctypes, time', 'libc = ctypes.CDLL(None)', ...names].join('\n');
    expect(await peer.run(program(code))).toMatchObject({ exit: 'ok' });
    expect(await nextRun()).toMatchObject(SERVED);
  });

  it('forges a report that would take process 1 too much memory to read', async () => {
    const before = residentKiB(supervisor, 'VmHWM');
    const code = `
def f():
    import os, socket, stat, struct
    found = (fd for fd in range(3, 99) if os.path.exists("/proc/self/fd/%d" % fd))
    control = socket.socket(fileno=next(fd for fd in found if stat.S_ISSOCK(os.fstat(fd).st_mode)))
    body = b'{"value":[' + b"[]," * (10 << 20) + b"[]]}"
    control.sendall(struct.pack(">I", len(body)) + body)
    os._exit(0)`;
    expect(await peer.run(call(code))).toMatchObject({ exit: 'nonzero', error: { type: 'NoValue' } });
    expect(residentKiB(supervisor, 'VmHWM') - before).toBeLessThan(128 * 1024);
    expect(await nextRun()).toMatchObject(SERVED);
  });

  it('prints endlessly while nobody reads, and memory stays bounded', async () => {
    const runs = ['x', 'y'].map((letter) => program(`while True: print("${letter}" * 1000)`));
    await peer.run(program('pass'));
    const before = residentKiB(supervisor);
    // The answers are never read; the connection stays open.
    peer.execute(runs, { executionId: 'flood', limits: limitsOf({ wallMs: 60_000 }) });
    let most = 0;
    let worked = -1;
    const rests = () => {
      most = Math.max(most, residentKiB(supervisor));
      const was = worked;
      worked = workedTicks(supervisor);
      return worked === was;
    };
    await expect.poll(rests, { interval: 300 }).toBe(true);
    peer = await supervisor.bound();
    peer.send({ type: 'execute', claim: CLAIM, executionId: 'flood', after: 0 });
    const frames = await peer.until('done');
    expect(frames.map(({ seq }) => seq)).toEqual(frames.map((_frame, i) => i));
    expect(frames.filter(({ type }) => type === 'run').map(({ result }) => result?.exit)).toEqual(['output', 'output']);
    expect(most - before).toBeLessThan(4 * 1024);
  });
});

function residentKiB(of: SupervisorProcess, field: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  const found = new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${insidePid(of)}/status`, 'utf8'));
  return Number(found?.[1] ?? 0);
}

/** Processor time of process 1. */
function workedTicks(of: SupervisorProcess): number {
  const fields =
    readFileSync(`/proc/${insidePid(of)}/stat`, 'utf8')
      .split(') ')[1]
      ?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

/** Process 1 as seen from here: the child of bubblewrap. */
function insidePid(of: SupervisorProcess): string {
  return readFileSync(`/proc/${of.pid}/task/${of.pid}/children`, 'utf8').split(' ')[0] ?? '';
}
