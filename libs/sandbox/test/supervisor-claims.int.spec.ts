import { describe, expect, it, onTestFinished } from 'vitest';
import { program } from './sandbox-fixture.js';
import { CLAIM, limitsOf, SupervisorProcess, TOKEN } from './supervisor-fixture.js';

const start = async (env: Record<string, string> = {}, before = '') => {
  const supervisor = await SupervisorProcess.start(env, before);
  onTestFinished(() => supervisor.stop());
  return supervisor;
};

const bind = (claim: string) => ({ type: 'bind', claim, token: TOKEN, leaseMs: 60_000 });

/** A clock that is ten days behind and ten days ahead in turn. */
const JUMPING = `import time, itertools
_real, _days = time.time, itertools.cycle((-10, 10))
time.time = lambda: _real() + next(_days) * 86400
time.time_ns = lambda: int(time.time() * 1e9)
_clock = time.clock_gettime
time.clock_gettime = lambda which: time.time() if which == time.CLOCK_REALTIME else _clock(which)`;

describe('a claim', () => {
  it('is won by exactly one of many that race', async () => {
    const supervisor = await start();
    const peers = await Promise.all(Array.from({ length: 20 }, () => supervisor.connect()));
    peers.forEach((peer, i) => peer.send(bind(`claim-${i}`)));
    const answers = await Promise.all(peers.map((peer) => peer.next()));
    expect(answers.filter(({ type }) => type === 'bound')).toHaveLength(1);
    expect(answers.filter(({ type, code }) => type === 'refused' && code === 'claimed')).toHaveLength(19);
  });

  it('is served in time while connections without a token send endlessly', async () => {
    const supervisor = await start();
    const owner = await supervisor.bound();
    const junk = Buffer.concat(Array.from({ length: 50_000 }, () => Buffer.from([0, 0, 0, 2, 0x7b, 0x7d])));
    for (const peer of await Promise.all(Array.from({ length: 30 }, () => supervisor.connect()))) {
      peer.write(junk);
      void peer.drain();
    }
    const result = await owner.run(program('import time\ntime.sleep(600)'), { limits: limitsOf({ wallMs: 1_000 }) });
    expect(result).toMatchObject({ exit: 'wall' });
    // A supervisor that served the other connections first would never end the run.
    expect(result['wallMs']).toBeLessThan(30_000);
  });

  it('ends process 1 when it is not renewed in time', async () => {
    // Much longer than each run, so that the lease is renewed in time on busy cores, but shorter than all runs together.
    const leaseMs = 4_000;
    const supervisor = await start();
    const peer = await supervisor.bound(CLAIM, leaseMs);
    const from = performance.now();
    for (const renewed of [1, 2, 3]) {
      await peer.run(program(`import time; time.sleep(1.5); print(${renewed})`));
      peer.send({ type: 'lease', claim: CLAIM, leaseMs });
    }
    expect(supervisor.alive).toBe(true);
    // Code that runs, prints and forks does not extend the lease.
    const limits = limitsOf({ wallMs: 3_600_000, cpuMs: 600_000 });
    peer.execute([program('import os, time\nos.fork()\nwhile True: print(1)')], { limits });
    await Promise.all([peer.drain(), supervisor.ended]);
    expect(performance.now() - from).toBeGreaterThan(3 * 1_500 + leaseMs - 200);
  });
});

describe('a sandbox without a claim', () => {
  it('ends itself when nobody is connected for long', async () => {
    const env = { ETUDE_SANDBOX_UNCLAIMED_MS: '2000' };
    const visited = await start(env);
    const peer = await visited.connect();
    void peer.drain();
    // The second sandbox started later. When it ends, the first one would have ended too, if nobody were connected.
    const alone = await start(env);
    await alone.ended;
    expect(visited.alive).toBe(true);
    peer.close();
    await visited.ended;
  });

  it('keeps 32 connections, and closes the oldest unbound one for a further one', async () => {
    const supervisor = await start();
    const owner = await supervisor.bound();
    const others = [];
    for (let i = 0; i < 40; i += 1) others.push(await supervisor.connect());
    await Promise.all(others.slice(0, 9).map((peer) => peer.drain()));
    others.at(-1)?.send({ type: 'nothing' });
    expect(await others.at(-1)?.next('refused')).toMatchObject({ code: 'unknown' });
    expect(await owner.run(program('print(1)'))).toMatchObject({ stdout: '1\n' });
  });
});

describe('a clock that is set while a sandbox runs', () => {
  it('does not change the time limits of code', async () => {
    const peer = await (await start({}, JUMPING)).bound();
    const jumps = await peer.run(program('import time\nprint(abs(time.time() - time.time()) > 1_000_000)'));
    expect(jumps).toMatchObject({ exit: 'ok', stdout: 'True\n' });
    // A jump of ten days would exceed these bounds by far; a busy machine does not reach them.
    const rested = await peer.run(program('import time\ntime.sleep(0.3)\nprint("rested")'), { limits: limitsOf({ wallMs: 30_000 }) });
    expect(rested).toMatchObject({ exit: 'ok', stdout: 'rested\n' });
    expect(rested.wallMs).toBeGreaterThanOrEqual(300);
    expect(rested.wallMs).toBeLessThan(30_000);
    const stopped = await peer.run(program('import time\ntime.sleep(600)'), { limits: limitsOf({ wallMs: 1_000 }) });
    expect(stopped).toMatchObject({ exit: 'wall' });
    expect(stopped.wallMs).toBeLessThan(30_000);
  });
});
