import { writeSync } from 'node:fs';
import { type Report, StackOptions } from '../home/stack-state.js';
import { supervise } from './supervisor.js';

const REPORT_FD = 3;
let listened = true;

function report(line: Report): void {
  process.stdout.write(`${JSON.stringify({ at: new Date().toISOString(), ...line })}\n`);
  if (!listened) return;
  try {
    writeSync(REPORT_FD, `${JSON.stringify(line)}\n`);
  } catch {
    listened = false; // `etude up` may end once the stack is ready
  }
}

const stop = new AbortController();
process
  .on('SIGTERM', () => stop.abort())
  .on('SIGINT', () => stop.abort())
  .on('SIGHUP', () => undefined);

const options = StackOptions.parse(JSON.parse(process.argv[2] ?? '{}'));
if (options.foreground)
  process.stdin
    .on('end', () => stop.abort())
    .on('error', () => stop.abort())
    .resume();

const ok = await supervise(options, { environment: process.env, report, signal: stop.signal });
process.exit(ok ? 0 : 1);
