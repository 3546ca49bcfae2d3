/** The current time, in ms since 1970. Not in it: timers; waiting belongs to adapters. */
export interface Clock {
  now(): number;
}
