// Shifts a process's clock by the milliseconds in the file ETUDE_TEST_CLOCK, also while it runs. Load it with --import. The monotonic clock stays.
import { readFileSync } from 'node:fs';

const RealDate = Date;
const realNow = Date.now;
let [shift, lookedAt] = [0, Number.NEGATIVE_INFINITY];

function now() {
  if (performance.now() - lookedAt > 20) {
    lookedAt = performance.now();
    shift = Number(readFileSync(process.env.ETUDE_TEST_CLOCK, 'utf8'));
  }
  return realNow() + shift;
}

globalThis.Date = new Proxy(RealDate, {
  construct: (_, args, target) => Reflect.construct(RealDate, args.length === 0 ? [now()] : args, target),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
