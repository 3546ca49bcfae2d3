import { afterEach, describe, expect, it } from 'vitest';
import { program } from './sandbox-fixture.js';
import { CLAIM, limitsOf, SupervisorProcess } from './supervisor-fixture.js';

/** A clock that is ten days behind and ten days ahead in turn. */
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

  it('does not change the time limits of code', async () => {
    const peer = await (await start()).bound();
    const jumps = await peer.run(program('import time\nprint(abs(time.time() - time.time()) > 1_000_000)'));
    expect(jumps).toMatchObject({ exit: 'ok', stdout: 'True\n' });
    // A jump is of ten days: what counts it is far beyond these bounds, and a busy machine is not.
    const rested = await peer.run(program('import time\ntime.sleep(0.3)\nprint("rested")'), { limits: limitsOf({ wallMs: 30_000 }) });
    expect(rested).toMatchObject({ exit: 'ok', stdout: 'rested\n' });
    expect(rested.wallMs).toBeGreaterThanOrEqual(300);
    expect(rested.wallMs).toBeLessThan(30_000);
    const stopped = await peer.run(program('import time\ntime.sleep(600)'), { limits: limitsOf({ wallMs: 1_000 }) });
    expect(stopped).toMatchObject({ exit: 'wall' });
    expect(stopped.wallMs).toBeLessThan(30_000);
  });

  it('does not change the end of a lease', async () => {
    const leaseMs = 3_000;
    await start();
    const from = performance.now();
    const peer = await supervisor.bound(CLAIM, leaseMs);
    await peer.run(program('import time\ntime.sleep(0.5)'));
    peer.send({ type: 'lease', claim: CLAIM, leaseMs });
    peer.drain();
    await supervisor.ended;
    expect(performance.now() - from).toBeGreaterThan(500 + leaseMs - 50);
  });
});
