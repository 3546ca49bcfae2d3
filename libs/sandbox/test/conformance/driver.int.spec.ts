import { randomUUID } from 'node:crypto';
import type { SandboxRun } from '@etude/contracts/sandbox';
import { sandboxesConformance } from '@etude/domain/testing/sandboxes-conformance';
import { describe, expect, it } from 'vitest';
import type { SandboxExecution } from '../../src/sandbox-driver.js';
import { program, requestOf, startUnderTest, useSandboxes } from '../sandbox-fixture.js';
import { Heard, openSession } from '../session-fixture.js';

const never = () => new AbortController().signal;
const cell = (code: string): SandboxRun => ({ kind: 'cell', code });

const execution = (runs: readonly SandboxRun[], more: Partial<SandboxExecution> = {}, limits = {}): SandboxExecution => ({
  ...requestOf(runs, { limits }),
  executionId: `driver-${randomUUID()}`,
  ...more,
});

describe('Sandboxes of the driver', () => {
  sandboxesConformance(() => startUnderTest());
});

describe('a claimed sandbox', () => {
  const sandboxes = useSandboxes({ warm: 1 });
  const session = async () => {
    const { claimed } = await openSession(sandboxes);
    const run = async (runs: readonly SandboxRun[], more: Partial<SandboxExecution> = {}, limits = {}) => {
      const heard = new Heard();
      expect(await claimed.execute(execution(runs, { keep: true, ...more }, limits), heard, never())).toBeNull();
      return heard;
    };
    return { claimed, run };
  };

  it('sends output while the code runs', async () => {
    const { claimed } = await openSession(sandboxes);
    const heard = new Heard();
    const code = 'import time\nprint("first", flush=True)\ntime.sleep(0.5)\nprint("last")';
    const running = claimed.execute(execution([program(code)]), heard, never());
    await expect.poll(() => heard.text, { interval: 10 }).toContain('first');
    expect(heard.results).toEqual([]);
    await running;
    expect(heard.text).toBe('first\nlast\n');
  });

  it('repeats the events of an execution, and runs nothing twice', async () => {
    const { run } = await session();
    const asked = { executionId: `again-${randomUUID()}` };
    const code = 'n = globals().get("n", 0) + 1\nprint("one", flush=True)\nimport time; time.sleep(0.1)\nprint("two")';
    const first = await run([cell(code)], asked);
    expect(await run([cell(code)], asked)).toEqual(first);
    expect((await run([cell('print(n)')])).text).toBe('1\n');
  });

  it('leaves nothing to the next one', async () => {
    const { run, claimed } = await session();
    const leave =
      'import os, subprocess\nfor d in ("/tmp", "/tmp/work", "/dev/shm"):\n    open(d + "/etude-left", "w").write("x")\nos.environ["ETUDE_LEFT"] = "1"\nsubprocess.Popen(["sleep", "600"], start_new_session=True)\nleft = 1';
    await run([cell(leave)]);
    await claimed.release();
    const next = await session();
    const look =
      'import os\nprint([d for d in ("/tmp", "/tmp/work", "/dev/shm") if os.path.exists(d + "/etude-left")], "ETUDE_LEFT" in os.environ, "left" in globals(), any("sleep" in open("/proc/%s/cmdline" % n).read() for n in os.listdir("/proc") if n.isdigit()))';
    expect((await next.run([cell(look)])).text).toBe('[] False False False\n');
  });

  it('runs nothing after its release', async () => {
    const { claimed } = await session();
    await claimed.release();
    const heard = new Heard();
    expect(await claimed.execute(execution([program('print(1)')]), heard, never())).toMatchObject({ exit: 'kernel_lost' });
    expect(heard.results).toEqual([]);
  });

  it('refuses to attach to an unknown place', async () => {
    await expect(sandboxes.driver.attach('nowhere', never())).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
  });
});
