import { describe, expect, it } from 'vitest';
import { BubblewrapDriver } from './bubblewrap-driver.js';
import type { SandboxLink, SandboxSource } from './sandbox-driver.js';

const SHAPE = { template: 'default', memoryMiB: 64, diskMiB: 32 };
const never = () => new AbortController().signal;

/** Sandboxes that send only a hello. `log` has the requests in order. */
function startDriver(warm: number) {
  const log: string[] = [];
  const open = (): SandboxLink => {
    const name = log.push('open') - 1;
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    const frames = [{ type: 'hello' }];
    return {
      alive: true,
      gone,
      send: () => undefined,
      receive: async () => frames.pop() ?? gone.then(() => null),
      complaint: () => '',
      async destroy() {
        log.push(`destroy ${name}`);
        resolve();
      },
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
    // Nothing has happened yet, so that the result is sent first.
    expect(log).toEqual(['open', 'open']);
    await released;
    expect(log).toEqual(['open', 'open', 'open', 'destroy 0']);
  });
});
