/** Returns the current time, in ms since 1970. Not part of this port: timers and waiting, which belong to adapters. */
export interface Clock {
  now(): number;
}
