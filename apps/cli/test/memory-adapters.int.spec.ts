import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeQdrant, findQdrant, startQdrant, type TestQdrant } from '@etude/test-support/qdrant';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { etude, SLOW, succeeds } from './etude.js';
import { stackForTests } from './stack-for-tests.js';

const PREFIX = `cli${process.pid}`;

const source = await findQdrant();
console.log(describeQdrant(source));

/** Runs `etude memory` against the stack of a home. */
function memoryIn(home: string) {
  const run = (...args: string[]) => etude(['memory', ...args, '--home', home]);
  return {
    home,
    run,
    /** The parsed output with --json. @throws Error if the command fails */
    json: async (...args: string[]) => JSON.parse((await succeeds(run(...args, '--json'))).stdout) as unknown,
    async export(...whose: string[]): Promise<readonly string[]> {
      const path = join(home, 'exported.jsonl');
      await succeeds(run('export', '-o', path, ...whose));
      // Skips the header, and sorts the records because they have no order.
      return readFileSync(path, 'utf8').trimEnd().split('\n').slice(1).toSorted();
    },
  };
}

/** One line of a file with messages. */
const said = (name: string, text: string) => `${JSON.stringify({ role: 'user', name, text, time: '2026-05-03T09:00:00Z' })}\n`;

describe.skipIf(source.kind === 'none')('etude memory', () => {
  let server: TestQdrant;
  beforeAll(async () => {
    server = await startQdrant(source);
  });
  // Runs after both stacks have stopped.
  afterAll(async () => {
    await server.drop(PREFIX);
    await server.stop();
  });

  const env = async () => ({
    ETUDE_QDRANT_URL: server.url,
    ETUDE_QDRANT_COLLECTION_PREFIX: PREFIX,
    ...(server.apiKey === null ? {} : { ETUDE_QDRANT_API_KEY: server.apiKey }),
    ...(server.caPath === null ? {} : { ETUDE_QDRANT_CA_PATH: server.caPath }),
  });
  const stacks = {
    sqlite: memoryIn(stackForTests(SLOW)),
    qdrant: memoryIn(stackForTests(SLOW, { flags: ['--memory', 'qdrant'], env })),
  };
  const stack = stacks.sqlite;

  it('adds a growing file to one conversation, and shows the turns around a hit', async () => {
    const file = join(stack.home, 'talk.jsonl');
    const whose = ['--user', 'dora'];
    writeFileSync(file, said('Eve', 'Where is the dinghy?') + said('Dora', 'Behind the kelp shed.'));
    const [id = ''] = (await succeeds(stack.run('add', file, ...whose))).stdout.split(' ');
    expect((await succeeds(stack.run('add', file, ...whose))).stdout).toContain('unchanged  2 messages');
    writeFileSync(file, said('Eve', 'Thanks!'), { flag: 'a' });
    expect(await stack.json('add', file, ...whose)).toMatchObject({ outcome: 'appended', first: 0, conversation: { id, turns: 3 } });
    expect(await stack.run('add', file, '--id', id, '--user', 'fay')).toMatchObject({ exit: 3 });
    const found = await succeeds(stack.run('search', 'kelp shed', '--kind', 'turn', '--limit', '1', ...whose));
    expect(found.stdout).toMatch(/Dora, 3 May 2026[^]*before:\n[^]*Where is the dinghy[^]*after:\n[^]*Thanks!/);
    const shown = await succeeds(stack.run('conversations', 'show', id));
    expect(shown.stdout).toContain('1  Dora (2026-05-03T09:00:00.000Z): Behind the kelp shed.');
    await succeeds(stack.run('conversations', 'delete', id, '--yes'));
    expect(await stack.json('conversations', 'list', ...whose)).toEqual({ conversations: [] });
  });

  it('erases only one user, returns a receipt, and refuses to import the erased records', async () => {
    for (const user of ['bo', 'carl']) await succeeds(stack.run('store', 'fact', `${user} likes tea.`, '--user', user));
    const copy = join(stack.home, 'bo.jsonl');
    await succeeds(stack.run('export', '--user', 'bo', '-o', copy));
    expect((await succeeds(stack.run('erase', '--user', 'bo', '--yes'))).stdout).toMatch(/removed:\n[^]*memory\.semantic\.fact +1/);
    expect(await stack.run('import', copy)).toMatchObject({ exit: 1, stdout: expect.stringContaining('1 refused') });
    expect([await stack.export('--user', 'bo'), await stack.export('--user', 'carl')]).toEqual([
      [],
      [expect.stringContaining('carl likes tea.')],
    ]);
  });

  it.each([
    ['sqlite', 'qdrant'],
    ['qdrant', 'sqlite'],
  ] as const)('moves a user from %s to %s without loss', async (from, to) => {
    const user = `mover-${from}`;
    for (const text of ['Moves on Mondays.', 'Keeps the piano in C♯ minor.'])
      await succeeds(stacks[from].run('store', 'fact', text, '--user', user));
    await succeeds(stacks[from].run('store', 'procedure', `tune_${from}`, 'Loosen the pin, then tighten it slowly.', '--user', user));
    const told = await stacks[from].export('--user', user);
    expect(told.length).toBeGreaterThanOrEqual(3);
    const moved = await succeeds(stacks[to].run('import', join(stacks[from].home, 'exported.jsonl')));
    expect(moved.stdout).toContain(`${told.length} added, 0 unchanged, 0 refused`);
    expect(await stacks[to].export('--user', user)).toEqual(told);
    expect((await succeeds(stacks[to].run('stats'))).stdout).toMatch(new RegExp(`^adapter +${to}$`, 'm'));
  });
});
