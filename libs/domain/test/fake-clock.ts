import type { Clock } from '../src/ports/clock.js';

/** A clock that only `advance` moves. Its time is in ms since 1970. */
export class FakeClock implements Clock {
  #now: number;

  constructor(now = 1_700_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }
}
