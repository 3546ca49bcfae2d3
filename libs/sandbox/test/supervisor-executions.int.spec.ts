import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { program } from './sandbox-fixture.js';
import { CLAIM, limitsOf, printed, SupervisorProcess, type Peer } from './supervisor-fixture.js';

let supervisor: SupervisorProcess;
let peer: Peer;
beforeAll(async () => {
  supervisor = await SupervisorProcess.start();
  peer = await supervisor.bound();
});
afterAll(() => supervisor.stop());

const cell = (code: string) => ({ kind: 'cell' as const, code });
const again = (executionId: string, after: number) => peer.send({ type: 'execute', claim: CLAIM, executionId, after });

describe('an execution', () => {
  it('of many runs keeps only the frames that its reader needs', async () => {
    const noisy = program('import sys\nsys.stdout.write("x" * (1 << 20))');
    const executionId = peer.execute(
      Array.from({ length: 60 }, () => noisy),
      { limits: limitsOf({ outputKiB: 1024 }) },
    );
    const frames = await peer.until('done');
    expect(frames.map(({ seq }) => seq)).toEqual(frames.map((_frame, i) => i));
    again(executionId, 0);
    expect(await peer.next('refused')).toMatchObject({ code: 'forgotten' });
    again(executionId, frames.length - 2);
    expect(await peer.until('done')).toEqual(frames.slice(-2));
  });
});

describe('output that is streamed', () => {
  it('is exactly the printed head and tail', async () => {
    const chunk = fc
      .oneof(fc.constantFrom('é', '漢字', '🙂', 'a', '\n'), fc.string({ unit: 'binary', maxLength: 200 }))
      .map((text) => Buffer.from(text));
    const bytes = fc.oneof(
      chunk,
      fc.uint8Array({ maxLength: 300 }).map((some) => Buffer.from(some)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(bytes, { maxLength: 20 }), async (chunks) => {
        const parts = JSON.stringify(chunks.map((part) => part.toString('hex')));
        const code = `import os, time\nfor part in ${parts}:\n    os.write(1, bytes.fromhex(part))\n    time.sleep(0.0003)`;
        peer.execute([program(code)], { limits: limitsOf({ outputKiB: 1 }) });
        const frames = await peer.until('done');
        const whole = Buffer.concat(chunks);
        const kept = whole.length <= 1_024 ? whole : Buffer.concat([whole.subarray(0, 512), whole.subarray(-512)]);
        expect(printed(frames, 'stdout')).toBe(kept.toString());
        const stdoutCutBytes = whole.length - kept.length;
        expect(frames.find(({ type }) => type === 'run')?.result).toMatchObject({ exit: 'ok', stdoutCutBytes });
      }),
      { numRuns: 20 },
    );
  });
});

describe('a cancel', () => {
  it('ends the whole process tree before its answer', async () => {
    const tree =
      'import os, time\nfor _ in range(4): os.fork()\nos.setsid() if os.getpid() != os.getpgrp() else None\nprint("up", flush=True)\ntime.sleep(60)';
    const others = program('import os\nprint(sum(name.isdigit() for name in os.listdir("/proc")))');
    const idle = (await peer.run(others)).stdout;
    for (let i = 0; i < 10; i += 1) {
      peer.execute([program(tree)], { limits: limitsOf({ wallMs: 3_600_000 }) });
      await peer.next('output');
      peer.send({ type: 'cancel' });
      const frames = await peer.until('done');
      expect(frames.find(({ type }) => type === 'run')?.result?.exit).toBe('cancelled');
      expect((await peer.run(others)).stdout).toBe(idle);
    }
  });

  it('keeps the names of a session even if its cell has not begun', async () => {
    await peer.run(cell('kept = 41'), { keep: true });
    for (let i = 0; i < 20; i += 1) {
      peer.execute([cell('while True: pass')], { keep: true });
      peer.send({ type: 'cancel' });
      const [run] = (await peer.until('done')).filter(({ type }) => type === 'run');
      expect(run?.result).toMatchObject({ exit: 'cancelled' });
      expect(run?.result).not.toHaveProperty('stateLost');
    }
    expect(await peer.run(cell('kept + 1'), { keep: true })).toMatchObject({ displays: [{ 'text/plain': '42' }] });
  });
});

const file = (path: string, content = 'x') => ({ path, contentBase64: Buffer.from(content).toString('base64') });

describe('files that can not be placed', () => {
  it.each([
    ['a way out', [file('../a')]],
    ['an absolute path', [file('/etc/a')]],
    ['the folder itself', [file('.')]],
    ['a null character', [file('a\0b')]],
    ['a name that is too long', [file('a'.repeat(300))]],
    ['a file as folder', [file('a'), file('a/b')]],
    ['a folder as file', [file('a/b'), file('a')]],
    ['no base64', [{ path: 'a', contentBase64: 'x' }]],
    ['half a character', [file('\ud800')]],
  ])('give a result, not a lost sandbox: %s', async (_name, files) => {
    for (const keep of [false, true]) {
      const result = await peer.run(program('print(1)'), { files, keep });
      expect(result).toMatchObject({ exit: 'nonzero', error: { type: 'FileRefused' }, stdout: '' });
    }
    expect(await peer.run(program('print(open("b").read())'), { files: [file('b')] })).toMatchObject({ exit: 'ok', stdout: 'x\n' });
  });

  it('give the exit disk if the disk is full', async () => {
    const files = Array.from({ length: 10 }, (_, i) => file(`f${i}`, 'x'.repeat(16 * 1024 * 1024)));
    expect(await peer.run(program('print(1)'), { files })).toMatchObject({ exit: 'disk', error: { type: 'FileRefused' } });
    expect(await peer.run(program('print(1)'))).toMatchObject({ exit: 'ok' });
  });
});
