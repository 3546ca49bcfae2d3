import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { findStack } from '../src/home/stack-state.js';
import { Etude, etude, SLOW, succeeds } from './etude.js';
import { stackForTests } from './stack-for-tests.js';

/** Code that counts until the sandbox has a file "stop". */
const COUNT = `import itertools, os, time
for i in itertools.takewhile(lambda _: not os.path.exists("stop"), itertools.count()): print(i, flush=True); time.sleep(0.01)
print("end")`;

describe('sandboxes from the command line', () => {
  const home = stackForTests(SLOW);
  const sandbox = (...args: string[]) => etude(['sandbox', ...args, '--home', home]);
  const create = async () => (await succeeds(sandbox('create'))).stdout.trim();
  const pidOf = async (process: string) => (await findStack(home))?.processes.find(({ name }) => name === process)?.pid ?? 0;

  it('run one piece of code and leave nothing open', async () => {
    expect(await sandbox('run', 'print("hello"); 6 * 7')).toMatchObject({ exit: 0, stdout: 'hello\n42\n' });
    const failed = await sandbox('run', 'print("before"); 1 / 0');
    expect(failed).toMatchObject({ exit: 1, stdout: 'before\n' });
    expect(failed.stderr).toMatch(/Traceback[^]*nonzero code 1 · ZeroDivisionError: division by zero \(line 1\)/);
    const { stdout } = await sandbox('list', '--state', 'open', '--json');
    expect(JSON.parse(stdout)).toEqual({ sandboxes: [] });
  });

  it('keep variables and files, and copy files in both directions', async () => {
    const name = await create();
    const file = join(home, 'numbers.txt');
    writeFileSync(file, '1\n2\n3\n');
    await succeeds(sandbox('upload', name, file, 'data/numbers.txt'));
    await succeeds(sandbox('exec', name, 'numbers = [int(line) for line in open("data/numbers.txt")]'));
    expect(await sandbox('exec', name, 'sum(numbers)')).toMatchObject({ exit: 0, stdout: '6\n' });
    expect(await sandbox('exec', name, '--shell', 'cat; ls data', '--stdin', 'in\n')).toMatchObject({ stdout: 'in\nnumbers.txt\n' });
    expect((await sandbox('files', name)).stdout).toContain('data/numbers.txt');
    // This writes to the stdout of the process.
    const download = new Etude(['sandbox', 'download', name, 'data/numbers.txt', '-', '--home', home]);
    expect(await download.ended).toMatchObject({ exit: 0, stdout: '1\n2\n3\n' });
    await succeeds(sandbox('download', name, 'data/numbers.txt', `${file}.back`));
    expect(readFileSync(`${file}.back`, 'utf8')).toBe('1\n2\n3\n');
    expect(await sandbox('download', name, 'data/numbers.txt', home)).toMatchObject({ exit: 2 });
    await succeeds(sandbox('rm', name, 'data/numbers.txt'));
    expect(await sandbox('download', name, 'data/numbers.txt')).toMatchObject({ exit: 3 });
    expect((await sandbox('renew', name, '--ttl', '2h', '--json')).stdout).toContain('"SANDBOX_STATE_OPEN"');
    expect((await sandbox('close', name)).stdout).toMatch(/state +closed/);
    expect(await sandbox('exec', name, '1')).toMatchObject({ exit: 6 });
  });

  it('cancel on Ctrl-C and keep their variables', async () => {
    const name = await create();
    await succeeds(sandbox('exec', name, 'kept = 5'));
    const running = new Etude(['sandbox', 'exec', name, COUNT, '--home', home]);
    await running.says('3\n');
    running.child.kill('SIGINT');
    const { exit, stderr } = await running.ended;
    expect({ exit, stderr }).toEqual({
      exit: 130,
      stderr: expect.stringMatching(/--execution-id \S+ --resume \S+[^]*cancelled · /),
    });
    expect(await sandbox('exec', name, 'kept')).toMatchObject({ stdout: '5\n' });
  });

  it('resume after the gateway was killed, without a gap or a repeat', async () => {
    const name = await create();
    const running = new Etude(['sandbox', 'exec', name, COUNT, '--home', home]);
    await running.says('3\n');
    process.kill(await pidOf('gateway'), 'SIGKILL');
    await running.says('lost the gateway');
    await until(async () => (await sandbox('upload', name, SLOW, 'stop')).exit === 0, { what: 'an upload through the next gateway' });
    const { exit, stdout } = await running.ended;
    const lines = stdout.trim().split('\n');
    expect({ exit, lines }).toEqual({ exit: 0, lines: [...Array.from(lines.slice(1).keys(), String), 'end'] });
  });

  it('report a sandbox that was lost with its controller, after its output', async () => {
    const name = await create();
    const running = new Etude(['sandbox', 'exec', name, COUNT, '--home', home]);
    await running.says('3\n');
    process.kill(await pidOf('sandbox-controller'), 'SIGKILL');
    const { exit, stdout, stderr } = await running.ended;
    expect({ exit, stderr }).toEqual({ exit: 6, stderr: expect.stringMatching(/was lost: infra: its controller .* ended/) });
    expect(stdout).toContain('0\n1\n2\n3\n');
    expect((await sandbox('get', name)).stdout).toMatch(/state +lost\nstate reason +infra/);
  });
});
