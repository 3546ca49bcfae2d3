import { describe, expect, it } from 'vitest';
import { InFlight } from './transport.js';

const never = () => new AbortController().signal;

describe('InFlight', () => {
  it('lets the next in line in when one leaves', async () => {
    const places = new InFlight(1);
    const order: string[] = [];
    const leave = await places.enter(never());
    const second = places.enter(never()).then((next) => (order.push('second'), next));
    const third = places.enter(never()).then((next) => (order.push('third'), next));
    leave();
    leave();
    (await second)();
    (await third)();
    expect(order).toEqual(['second', 'third']);
  });

  it('keeps no place for one who gave up waiting', async () => {
    const places = new InFlight(1);
    const leave = await places.enter(never());
    const impatient = new AbortController();
    const gone = places.enter(impatient.signal);
    const patient = places.enter(never());
    impatient.abort();
    await expect(gone).rejects.toMatchObject({ name: 'AbortError' });
    leave();
    (await patient)();
    (await places.enter(never()))();
    await expect(places.enter(AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' });
  });
});
