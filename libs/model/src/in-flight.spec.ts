import { describe, expect, it } from 'vitest';
import { InFlight } from './in-flight.js';

const never = () => new AbortController().signal;

describe('InFlight', () => {
  it('runs the next in line when one ends, and none that gave up waiting', async () => {
    const places = new InFlight(1);
    const order: string[] = [];
    const first = Promise.withResolvers<void>();
    const impatient = new AbortController();
    const calls = [
      places.run(() => first.promise, never()),
      places.run(async () => order.push('gone'), impatient.signal).catch((error: Error) => order.push(error.name)),
      places.run(async () => order.push('second'), never()),
      places.run(async () => order.push('third'), never()),
    ];
    impatient.abort();
    first.resolve();
    await Promise.all(calls);
    expect(order).toEqual(['AbortError', 'second', 'third']);
    await expect(places.run(async () => {}, AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' });
  });
});
