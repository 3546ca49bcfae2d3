import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { freePort } from '@etude/test-support/ports';
import { until } from '@etude/test-support/until';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { findStack } from '../src/home/stack-state.js';
import { isAlive } from '../src/stack/down.js';
import { testFolder } from '@etude/test-support/test-folder';
import { Etude, etude, messagesIn, ROOT, SLOW, succeeds } from './etude.js';

const UP = ['up', '--scripted', SLOW];
/** Runs SQL on a file. The command line may not import SQLite. */
const RUN_SQL = 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.close()';

async function pidsOf(home: string): Promise<number[]> {
  const state = await findStack(home);
  if (!state) throw new Error(`nothing runs in ${home}`);
  return [state.pid, ...state.processes.flatMap(({ pid }) => pid ?? [])];
}

/** Names the processes that still run. */
const gone = (pids: readonly number[]) =>
  until(() => !pids.some(isAlive), { what: 'the end of every process of the stack' }).catch((error: unknown) => {
    const left = pids.filter(isAlive).map((pid) => `${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`);
    throw new Error(`these processes stayed: ${left.join('; ')}`, { cause: error });
  });

describe('a stack in the foreground', () => {
  let home: string;
  let up: Etude;
  let pids: number[];

  beforeEach(async () => {
    home = testFolder();
    up = new Etude([...UP, '--home', home]);
    await up.says('Ctrl-C stops it');
    pids = await pidsOf(home);
  });

  afterEach(() => etude(['down', '--home', home]));

  it('leaves no process behind when its command line is killed', async () => {
    up.child.kill('SIGKILL');
    await expect(gone(pids)).resolves.toBe(true);
  });

  it('leaves no process behind when its supervisor is killed', async () => {
    process.kill(pids[0] ?? 0, 'SIGKILL');
    expect(await up.ended).toMatchObject({ exit: 4 });
    await expect(gone(pids)).resolves.toBe(true);
  });
});

describe('a stack in the background', () => {
  const home = testFolder(afterAll);
  let taken: Server;
  let port: number;
  // On a default port, another test's stack could take the port while a test has killed this gateway.
  let others: Readonly<Record<string, string>>;
  const run = (...args: string[]) => etude([...args, '--home', home], { ETUDE_GRPC_PORT: String(port), ...others });

  beforeAll(async () => {
    port = await freePort();
    others = { ETUDE_REST_PORT: String(await freePort()), ETUDE_MCP_PORT: String(await freePort()) };
    taken = createServer().listen(port, '127.0.0.1');
    await once(taken, 'listening');
    await succeeds(run(...UP, '--detach'));
  });

  afterAll(async () => {
    await run('down');
    taken.close();
  });

  it('uses another port if its own port is taken', async () => {
    const state = await findStack(home);
    expect(state).toMatchObject({ ready: true });
    expect(state?.address).not.toBe(`127.0.0.1:${port}`);
  });

  it('shows its processes, and what comparing facts has cost', async () => {
    expect(await run('status')).toMatchObject({
      exit: 0,
      stdout: expect.stringMatching(/PROCESS[^]*0 facts wait to be compared; 0 model calls/),
    });
  });

  it('is not changed by a second start', async () => {
    const again = await run(...UP, '--detach');
    expect(again).toMatchObject({ exit: 0, stderr: expect.stringContaining('already running') });
  });

  it('restarts a killed service while a watch misses and repeats no event', async () => {
    const watch = new Etude(['tasks', 'submit', '--prompt', 'Say it slowly.', '--watch', '--json', '--home', home]);
    await watch.says('"attemptStarted"');
    const gateway = (await findStack(home))?.processes.find(({ name }) => name === 'gateway');
    process.kill(gateway?.pid ?? 0, 'SIGKILL');
    const { exit, stdout, stderr } = await watch.ended;
    expect(stderr).toContain('lost the gateway');
    expect(exit).toBe(0);
    const events = messagesIn<{ resumeToken: string; finished: { task: { name: string } } }>(await watch.ended);
    expect(new Set(events.map(({ resumeToken }) => resumeToken)).size).toBe(events.length);
    const replay = await run('tasks', 'watch', events.at(-1)!.finished.task.name, '--json');
    expect(replay.stdout).toBe(stdout);
    expect((await findStack(home))?.processes.find(({ name }) => name === 'gateway')).toMatchObject({ restarts: 1, ready: true });
  });

  it('ends a watch on Ctrl-C and prints how to resume the watch', async () => {
    const watch = new Etude(['tasks', 'submit', '--prompt', 'Say it slowly, please.', '--watch', '--home', home]);
    await watch.says('attempt 1');
    watch.child.kill('SIGINT');
    const { exit, stderr } = await watch.ended;
    expect(exit).toBe(130);
    const [, name = '', token = ''] = /etude tasks watch (tasks\/\w+) --from (\S+)/.exec(stderr) ?? [];
    const rest = await run('tasks', 'watch', name, '--from', token);
    expect(rest).toMatchObject({ exit: 0, stdout: expect.stringContaining('succeeded') });
    expect(rest.stdout).not.toContain('queued');
  });

  it('accepts a new key at once, for its own tenant only', async () => {
    const { stdout } = await run('keys', 'create', '--tenant', 'acme');
    const list = await run('tasks', 'list', '--api-key', stdout.trim(), '--json');
    expect(list).toMatchObject({ exit: 0, stdout: '{"tasks":[]}\n' });
  });

  it('keeps its data after down and up', async () => {
    const tasks = async () => messagesIn<{ tasks: { endTime?: string }[] }>(await run('tasks', 'list', '--json')).at(0)!;
    await until(async () => (await tasks()).tasks.every(({ endTime }) => endTime), { what: 'the end of every task' });
    const before = await tasks();
    const pids = await pidsOf(home);
    expect(await run('down')).toMatchObject({ exit: 0 });
    expect(pids.filter(isAlive)).toEqual([]);
    expect(await run('status')).toMatchObject({ exit: 4 });
    expect(await run(...UP, '--detach')).toMatchObject({ exit: 0 });
    expect(await tasks()).toEqual(before);
  });
});

it('starts without a reachable model server, and stops all processes on Ctrl-C', async () => {
  const home = testFolder();
  const base = `http://127.0.0.1:${await freePort()}/v1`;
  const up = new Etude(['up', '--home', home], { OPENAI_BASE_URL: base, OPENAI_MODEL: 'm' });
  await up.says('Ctrl-C stops it');
  const pids = await pidsOf(home);
  expect(pids).toHaveLength(6);
  up.child.kill('SIGINT');
  const { exit, stdout } = await up.ended;
  expect({ exit, stdout }).toEqual({ exit: 0, stdout: expect.stringMatching(/^model +m at /m) });
  expect(pids.filter(isAlive)).toEqual([]);
});

describe('a stack that cannot start', () => {
  let home: string;
  beforeEach(() => void (home = testFolder()));

  it('names the settings if no model is set', async () => {
    const { exit, stderr } = await etude(['up', '--home', home]);
    expect(exit).toBe(2);
    expect(stderr).toContain('OPENAI_BASE_URL');
  });

  it('names a file that is not a script', async () => {
    const { exit, stderr } = await etude(['up', '--scripted', `${ROOT}README.md`, '--home', home]);
    expect({ exit, stderr }).toMatchObject({ exit: 4, stderr: expect.stringMatching(/could not be started: model .*README\.md: /s) });
  });

  it('prints the reason, and stops the started processes', async () => {
    // The application id is "Etu1".
    const sql = 'CREATE TABLE t (x); PRAGMA application_id = 1165260081; PRAGMA user_version = 99';
    execFileSync('/usr/bin/python3', ['-c', RUN_SQL, join(home, 'memory.sqlite'), sql]);
    const { exit, stderr } = await etude([...UP, '--home', home]);
    expect({ exit, stderr }).toMatchObject({ exit: 4, stderr: expect.stringMatching(/later version of Etude.*layout 99/s) });
    expect(await findStack(home)).toBeNull();
  });
});
