import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Isolation } from '../src/local-driver.js';
import type { ExecutionSink } from '../src/sandbox-driver.js';
import { checked, program, requestOf, useSandboxes } from './sandbox-fixture.js';

interface Counter {
  /** Name of the attack in `counters/attacks.py`. */
  readonly name: string;
  /** The highest count that one sandbox may reach. 0: the call is refused. */
  readonly most: number;
  /** The count that the attack must reach, which shows that it works. Default 0. */
  readonly least?: number;
  /** Whether all sandboxes of one host user share one limit. */
  readonly perUser?: boolean;
}

/** The limit of a run (64) plus the processes of the runner. */
const PROCESSES = 70;
const FILES = 256;

const LIMITED: readonly Counter[] = [
  // After 1,024 pipes of one user, further pipes hold 8 KiB instead of 64.
  { name: 'pipes', least: 1_025, most: PROCESSES * FILES, perUser: true },
  { name: 'descriptors in flight', least: FILES, most: 2 * FILES, perUser: true },
  { name: 'watches of epoll', least: 1_000, most: FILES * FILES },
  { name: 'processes', least: 32, most: PROCESSES },
  { name: 'open files', least: 1_000, most: PROCESSES * FILES },
  { name: 'pending signals', least: 900, most: 1_000 },
  { name: 'timers', least: 900, most: 1_000 },
  { name: 'locked pages', least: 16, most: PROCESSES * 16 },
  { name: 'terminals', most: 16 },
];

const pythonOf = (name: string) => readFileSync(new URL(`counters/${name}.py`, import.meta.url), 'utf8');
const ATTACKS = [...pythonOf('attacks').matchAll(/^ {4}"(.+)": /gm)].map(([, name = '']) => name);
/** All other attacks: their calls are refused. */
const REFUSED: readonly Counter[] = ATTACKS.filter((name) => LIMITED.every((limited) => limited.name !== name)).map((name) => ({
  name,
  most: 0,
}));

const HONEST = [
  'bytes in a pipe: 65536',
  'descriptors received: 1',
  'events: 1',
  'files: 100',
  'thread',
  'exit of a process: 0',
  'queued: 0 True',
  'timer: 0',
  'alarm: True',
  'locked: 0',
  '',
].join('\n');

it('tries every call that is refused', () => {
  expect(REFUSED).toHaveLength(27);
});

describe.each<[Isolation, readonly Counter[]]>([
  ['nest', [...LIMITED, ...REFUSED]],
  // All sandboxes have the same filter of system calls, so refused calls are not tried again.
  ['single', LIMITED],
])('what the kernel counts, with isolation %s', (isolation, counters) => {
  const sandboxes = useSandboxes({ warm: 0, isolation });

  /** Runs an attack until the test ends. Resolves to the count that it has reached. */
  const attack = async (name: string): Promise<number> => {
    const request = requestOf([program(pythonOf('attacks'), name)], { tenant: 'mallory', limits: { wallMs: 60_000, memoryMiB: 4_096 } });
    const sandbox = await sandboxes.driver.claim({ template: 'default', memoryMiB: 4_096, diskMiB: 128 }, new AbortController().signal);
    onTestFinished(() => sandbox.release());
    const reached = Promise.withResolvers<number>();
    const sink: ExecutionSink = {
      output: (_stream, text) => reached.resolve(Number(text)),
      display: () => undefined,
      result: ({ exit, stderr }) => reached.reject(new Error(`the attack ended: ${exit} ${stderr}`)),
    };
    void sandbox.execute(request, sink, new AbortController().signal);
    return reached.promise;
  };

  it.for(counters)('leave others what they need: $name', async ({ name, least = 0, most, perUser = false }, { skip }) => {
    const note = sandboxes.driver.check();
    skip(perUser && note !== undefined, note);
    const reached = await attack(name);
    expect(reached).toBeGreaterThanOrEqual(least);
    expect(reached).toBeLessThanOrEqual(most);
    const runs = [program(pythonOf('honest')), checked('def f(x):\n    return x + 1', 'assert f(1) == 2')];
    expect(await sandboxes.run(runs)).toMatchObject([
      { exit: 'ok', stdout: HONEST, stderr: '' },
      { exit: 'ok', passed: true },
    ]);
  });
});
