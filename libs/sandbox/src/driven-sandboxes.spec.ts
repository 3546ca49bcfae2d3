import { describe, expect, it } from 'vitest';
import { Slots } from './driven-sandboxes.js';

const never = () => new AbortController().signal;

describe('driven-sandboxes', () => {
  it('pass to who waits longest', async () => {
    const slots = new Slots(1, 10);
    const order: number[] = [];
    const leave = await slots.enter(never());
    const waiting = [1, 2, 3].map(async (n) => {
      const leaveNow = await slots.enter(never());
      order.push(n);
      leaveNow();
    });
    leave();
    await Promise.all(waiting);
    expect(order).toEqual([1, 2, 3]);
  });

  it('forget who gives up waiting', async () => {
    const slots = new Slots(1, 10);
    const leave = await slots.enter(never());
    const stop = new AbortController();
    const first = slots.enter(stop.signal);
    const second = slots.enter(never());
    stop.abort();
    await expect(first).rejects.toMatchObject({ name: 'AbortError' });
    leave();
    await expect(second).resolves.toBeTypeOf('function');
  });

  it('refuse more than may wait', async () => {
    const slots = new Slots(1, 0);
    await slots.enter(never());
    await expect(slots.enter(never())).rejects.toMatchObject({ code: 'SANDBOX_CAPACITY' });
  });
});
