import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { expect, it, onTestFinished } from 'vitest';
import { ensureLocalKey } from '../src/home/home.js';
import { findStack, type Report, type StackOptions } from '../src/home/stack-state.js';
import { freePort } from '../src/stack/programs.js';
import { supervise } from '../src/stack/supervisor.js';
import { isAlive, ROOT } from './etude.js';

const TIMEOUT_MS = 240_000;
/** Ports of one start, in the order in which they are chosen. */
const CHOSEN = ['redis', 'grpc', 'rest', 'mcp', 'model', 'qdrant', 'sandbox'] as const;

/** A port of this test's own. */
async function heldPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.close();
    await once(server, 'close');
  });
  return (server.address() as AddressInfo).port;
}

/** As if another process had been faster, at each start for another port. */
function losing(held: number, whichAtEach: ReadonlyArray<(typeof CHOSEN)[number]>) {
  let chosen = 0;
  return async () => {
    const at = chosen;
    chosen += 1;
    return CHOSEN[at % CHOSEN.length] === whichAtEach[Math.floor(at / CHOSEN.length)] ? held : freePort();
  };
}

function optionsIn(home: string): StackOptions {
  const ports = { grpcPort: 0, restPort: 0, mcpPort: 0, redisPort: 0 };
  const scripted = `${ROOT}apps/cli/test/slow.yaml`;
  return { home, root: ROOT, ...ports, rolloutWorkers: 1, concurrency: 1, scripted, sandbox: 'local', memory: 'sqlite', foreground: true };
}

function start(held: number, whichAtEach: ReadonlyArray<(typeof CHOSEN)[number]>) {
  const home = mkdtempSync(join(tmpdir(), 'etude-ports-'));
  ensureLocalKey(home);
  const [stop, reports] = [new AbortController(), [] as Report[]];
  const environment = { ...process.env, ETUDE_EMBEDDER: 'lexical' };
  const deps = { environment, report: (report: Report) => void reports.push(report), signal: stop.signal };
  const ended = supervise(optionsIn(home), { ...deps, choosePort: losing(held, whichAtEach) });
  onTestFinished(async () => {
    stop.abort();
    await ended;
    rmSync(home, { recursive: true, force: true });
  });
  return { home, stop, reports, ended };
}

it(
  'starts on other ports where one was taken after it was chosen',
  async () => {
    const held = await heldPort();
    const { home, stop, reports, ended } = start(held, ['redis', 'mcp']);
    await until(() => reports.some(({ ready, failed }) => ready || failed), { timeoutMs: TIMEOUT_MS, what: 'the stack' });
    expect(reports.flatMap(({ failed = [] }) => failed)).toEqual([]);
    expect(reports.filter(({ note = '' }) => note.includes('was taken by another process'))).toHaveLength(2);
    const state = await findStack(home);
    expect(state?.ready).toBe(true);
    expect(JSON.stringify(state)).not.toContain(`:${held}`);
    const pids = state?.processes.flatMap(({ pid }) => pid ?? []) ?? [];
    expect(pids).toHaveLength(6);
    stop.abort();
    expect(await ended).toBe(true);
    expect(pids.filter(isAlive)).toEqual([]);
  },
  TIMEOUT_MS,
);
