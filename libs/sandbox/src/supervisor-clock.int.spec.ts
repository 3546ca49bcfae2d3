import { afterEach, describe, expect, it } from 'vitest';
import { program } from './sandbox-fixture.js';
import { CLAIM, SupervisorProcess } from './supervisor-fixture.js';

/** Whoever asks what time it is hears of ten days ago and of ten days ahead in turn. */
const JUMPING = `import time, itertools
_real, _days = time.time, itertools.cycle((-10, 10))
time.time = lambda: _real() + next(_days) * 86400
time.time_ns = lambda: int(time.time() * 1e9)
_clock = time.clock_gettime
time.clock_gettime = lambda which: time.time() if which == time.CLOCK_REALTIME else _clock(which)`;

describe('a clock that is set while a sandbox runs', () => {
  let supervisor: SupervisorProcess;
  const start = async () => (supervisor = await SupervisorProcess.start({}, JUMPING));
  afterEach(() => supervisor.stop());

  it('jumps for everybody who asks for it', async () => {
    const peer = await (await start()).bound();
    const code = 'import time\nprint(abs(time.time() - time.time()) > 1_000_000)';
    expect(await peer.run(program(code))).toMatchObject({ exit: 'ok', stdout: 'True\n' });
  });

  it('neither shortens nor lengthens what code may take', async () => {
    const peer = await (await start()).bound();
    const limits = { cpuMs: 10_000, wallMs: 1_000, memoryMiB: 64, processes: 8, fileSizeMiB: 1, outputKiB: 16, diskMiB: 4, openFiles: 64 };
    const rested = await peer.run(program('import time\ntime.sleep(0.3)\nprint("rested")'), { limits });
    expect(rested).toMatchObject({ exit: 'ok', stdout: 'rested\n' });
    expect(rested.wallMs).toBeGreaterThanOrEqual(300);
    expect(rested.wallMs).toBeLessThan(1_000);
    const stopped = await peer.run(program('import time\ntime.sleep(60)'), { limits });
    expect(stopped).toMatchObject({ exit: 'wall' });
    expect(stopped.wallMs).toBeLessThan(3_000);
  });

  it('neither ends a lease nor extends it', async () => {
    await start();
    const from = performance.now();
    const peer = await supervisor.bound(CLAIM, 1_000);
    await peer.run(program('import time\ntime.sleep(0.5)'));
    peer.send({ type: 'lease', claim: CLAIM, leaseMs: 1_000 });
    peer.drain();
    await supervisor.ended;
    expect(performance.now() - from).toBeGreaterThan(1_450);
    expect(performance.now() - from).toBeLessThan(5_000);
  });
});
