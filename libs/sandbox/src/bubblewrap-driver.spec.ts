import { describe, expect, it } from 'vitest';
import { BubblewrapDriver } from './bubblewrap-driver.js';
import type { SandboxLink, SandboxSource } from './sandbox-driver.js';

const SHAPE = { template: 'default', memoryMiB: 64, diskMiB: 32 };
const never = () => new AbortController().signal;

/** Sandboxes that send only a hello. `log` has the requests in order. */
function startDriver(warm: number) {
  const log: string[] = [];
  const open = (): SandboxLink => {
    const name = log.filter((entry) => entry.startsWith('open')).length;
    log.push(`open ${name}`);
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    let hello = true;
    let alive = true;
    const end = () => {
      if (alive) log.push(`destroy ${name}`);
      alive = false;
      resolve();
      return gone;
    };
    const receive = async () => {
      if (!hello) await gone;
      const frame = hello ? { type: 'hello' } : null;
      hello = false;
      return frame;
    };
    return {
      get alive() {
        return alive;
      },
      gone,
      send: () => undefined,
      receive,
      complaint: () => '',
      destroy: end,
    };
  };
  const source: SandboxSource = { open, close: () => Promise.resolve() };
  return { driver: new BubblewrapDriver(new Map([[SHAPE.template, source]]), warm, SHAPE), log };
}

describe('a sandbox that is released', () => {
  it('is destroyed and replaced after its result was sent', async () => {
    const { driver, log } = startDriver(2);
    await driver.warmUp();
    const sandbox = await driver.claim(SHAPE, never());
    const released = sandbox.release();
    // In the same turn, in which the answer leaves.
    expect(log).toEqual(['open 0', 'open 1']);
    await released;
    expect(log).toEqual(['open 0', 'open 1', 'open 2', 'destroy 0']);
  });
});
