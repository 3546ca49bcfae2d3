import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { printed, SupervisorProcess, type Frame, type Peer } from './supervisor-fixture.js';

const VECTORS = new URL('../runner/vectors/', import.meta.url);
const Fields = z.record(z.string(), z.json());
const Step = z.union([
  z.strictObject({ connect: z.string() }),
  z.strictObject({ on: z.string(), send: Fields }),
  z.strictObject({ on: z.string(), sendHex: z.string() }),
  z.strictObject({ on: z.string(), expect: Fields }),
  z.strictObject({
    on: z.string(),
    until: z.string(),
    exits: z.array(z.string()).optional(),
    results: z.array(Fields).optional(),
    printed: Fields.optional(),
    displays: z.array(z.json()).optional(),
    seqFrom: z.number().optional(),
  }),
  z.strictObject({ on: z.string(), ends: z.literal(true) }),
]);
type Step = z.infer<typeof Step>;
const Vector = z.strictObject({ about: z.string(), steps: z.array(Step) });

const names = readdirSync(VECTORS).filter((name) => name.endsWith('.json'));

it.each(names)('the supervisor answers as in the vector %s', async (name) => {
  const { steps } = Vector.parse(JSON.parse(readFileSync(new URL(name, VECTORS), 'utf8')));
  const supervisor = await SupervisorProcess.start();
  try {
    const peers = new Map<string, Peer>();
    for (const step of steps) await take(step, supervisor, peers);
    expect(steps.length).toBeGreaterThan(0);
  } finally {
    await supervisor.stop();
  }
});

async function take(step: Step, supervisor: SupervisorProcess, peers: Map<string, Peer>): Promise<void> {
  if ('connect' in step) {
    peers.set(step.connect, await supervisor.connectUngreeted());
    return;
  }
  const peer = peers.get(step.on);
  if (!peer) throw new Error(`no connection "${step.on}"`);
  if ('send' in step) peer.send(step.send);
  else if ('sendHex' in step) peer.write(Buffer.from(step.sendHex, 'hex'));
  else if ('expect' in step) meets(await peer.next(), step.expect);
  else if ('ends' in step) await peer.drain();
  else check(step, await peer.until(step.until));
}

function check(step: Extract<Step, { until: string }>, frames: readonly Frame[]): void {
  const results = frames.filter(({ type }) => type === 'run').map(({ result }) => result);
  const told = {
    exits: results.map((result) => result?.exit),
    results,
    printed: { stdout: printed(frames, 'stdout'), stderr: printed(frames, 'stderr') },
    displays: frames.filter(({ type }) => type === 'display').map(({ data }) => data),
  };
  const { on: _on, until: _until, seqFrom, ...expected } = step;
  meets(told, expected);
  if (seqFrom !== undefined) expect(frames.map(({ seq }) => seq)).toEqual(frames.map((_frame, i) => seqFrom + i));
}

function meets(actual: unknown, expected: unknown): void {
  expect(seen(actual, expected)).toEqual(expected);
}

/** The parts of `actual` that `expected` lists, with the wildcards of `expected` where they match. Equal to `expected` if all matches. */
function seen(actual: unknown, expected: unknown): unknown {
  if (expected === '<text>' && typeof actual === 'string') return expected;
  if (expected === '<number>' && typeof actual === 'number') return expected;
  if (expected === '<absent>' && actual === undefined) return expected;
  if (Array.isArray(expected) && Array.isArray(actual)) return actual.map((item, i) => seen(item, expected[i]));
  if (!isObject(expected) || !isObject(actual)) return actual;
  return Object.fromEntries(Object.entries(expected).map(([name, value]) => [name, seen(actual[name], value)]));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
