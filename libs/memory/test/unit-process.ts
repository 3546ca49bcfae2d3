import { work } from './unit-run.js';

/** A process that consolidates (`run DIR EFFECTS`) or undoes the consolidation (`undo DIR EFFECTS`), and kills itself after EFFECTS effects. */
const [role = '', dir = '', effects = ''] = process.argv.slice(2);
let left = Number(effects);
await work(role === 'undo' ? 'undo' : 'run', dir, async (done) => {
  const result = await done;
  left -= 1;
  if (left === 0) process.kill(process.pid, 'SIGKILL');
  return result;
});
