import { randomUUID } from 'node:crypto';
import type { SandboxRun } from '@etude/contracts/sandbox';
import { sandboxesConformance } from '@etude/domain/testing/sandboxes-conformance';
import { describe, expect, it } from 'vitest';
import { program, requestOf, startUnderTest, useSandboxes } from '../sandbox-fixture.js';
import { Heard, openSession } from '../session-fixture.js';

const never = () => new AbortController().signal;
const execution = (runs: readonly SandboxRun[]) => ({ ...requestOf(runs), executionId: `driver-${randomUUID()}` });

describe('Sandboxes of the driver', () => {
  sandboxesConformance(() => startUnderTest());
});

describe('a claimed sandbox', () => {
  const sandboxes = useSandboxes({ warm: 1 });
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
    const { claimed, cell } = await openSession(sandboxes);
    const code = 'n = globals().get("n", 0) + 1\nprint("one", flush=True)\nimport time; time.sleep(0.1)\nprint("two")';
    const asked = { ...execution([{ kind: 'cell', code }]), keep: true };
    const [first, again] = [new Heard(), new Heard()];
    for (const heard of [first, again]) expect(await claimed.execute(asked, heard, never())).toBeNull();
    expect(again).toEqual(first);
    expect((await cell('print(n)')).stdout).toBe('1\n');
  });

  it('leaves nothing to the next one', async () => {
    const { cell, claimed } = await openSession(sandboxes);
    const leave =
      'import os, subprocess\nfor d in ("/tmp", "/tmp/work", "/dev/shm"):\n    open(d + "/etude-left", "w").write("x")\nos.environ["ETUDE_LEFT"] = "1"\nsubprocess.Popen(["sleep", "600"], start_new_session=True)\nleft = 1';
    await cell(leave);
    await claimed.release();
    const next = await openSession(sandboxes);
    const look =
      'import os\nprint([d for d in ("/tmp", "/tmp/work", "/dev/shm") if os.path.exists(d + "/etude-left")], "ETUDE_LEFT" in os.environ, "left" in globals(), any("sleep" in open("/proc/%s/cmdline" % n).read() for n in os.listdir("/proc") if n.isdigit()))';
    expect((await next.cell(look)).stdout).toBe('[] False False False\n');
  });

  it('runs nothing after its release', async () => {
    const { claimed } = await openSession(sandboxes);
    await claimed.release();
    const heard = new Heard();
    expect(await claimed.execute(execution([program('print(1)')]), heard, never())).toMatchObject({ exit: 'kernel_lost' });
    expect(heard.results).toEqual([]);
  });

  it('refuses to attach to an unknown place', async () => {
    await expect(sandboxes.driver.attach('nowhere', never())).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
  });
});
