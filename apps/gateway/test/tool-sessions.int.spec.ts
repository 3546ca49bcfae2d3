import type { JsonObject } from '@bufbuild/protobuf';
import { Sandboxes, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { QueueErasure } from '@etude/queue/erasure/queue-erasure';
import type { TestProcess } from '@etude/test-support/processes';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { collect, GatewayRig, type KeyName } from './gateway.harness.js';
import { writeProofKeys } from './skill-store.js';
import { startWorkers } from './skill-workers.js';

const rig = new GatewayRig();
const { signingPath, publicPath } = writeProofKeys(rig.dir);
const OPEN_MAX = 6;
let workers: TestProcess[] = [];
beforeAll(async () => {
  const settings = {
    ETUDE_SKILLS_ENABLED: 'true',
    ETUDE_SKILLS_AUTO_REGISTER: 'true',
    ETUDE_SKILLS_APPROVAL: 'automatic',
    ETUDE_SKILLS_PUBLIC_KEYS_PATH: publicPath,
    ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-this-test',
    ETUDE_TOOLS_SANDBOXES_OPEN_MAX: String(OPEN_MAX),
  };
  await rig.start(settings);
  const more = { ...settings, ETUDE_SKILLS_SIGNING_KEY_PATH: signingPath };
  workers = await startWorkers(rig, ['sandbox-controller', 'consolidation-worker'], more);
}, 240_000);
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await rig.stop();
});

const never = new AbortController().signal;

interface Caller {
  readonly key?: KeyName;
  readonly agent?: string;
  readonly user?: string;
  readonly session?: string;
  readonly requestId?: string;
}

async function call(tool: string, args: JsonObject, { key = 'acme', ...caller }: Caller = {}) {
  const { success, result, error } = await rig.client(Tools, key).callTool({ tool, arguments: args, agent: 'coder', ...caller });
  return { success, error, result: (result ?? {}) as Record<string, unknown> };
}
const interpret = (prompt: string, caller: Caller, more: JsonObject = {}) => call('code_interpreter', { prompt, ...more }, caller);
const sandboxes = (key: KeyName = 'acme') => rig.client(Sandboxes, key);
const close = (name: unknown) => sandboxes().closeSandbox({ name: String(name) });

const openNames = async () => (await sandboxes().listSandboxes({ state: SandboxState.OPEN })).sandboxes.map(({ name }) => name);

async function* upload(name: string, path: string, text: string) {
  yield { part: { case: 'header' as const, value: { name, path } } };
  yield { part: { case: 'chunk' as const, value: Buffer.from(text) } };
}

describe('a session of the code interpreter', () => {
  it('keeps names and files, takes files by name, and gives them back', async () => {
    const caller = { session: 'analysis' };
    const first = await interpret('import csv\nx = 41\nprint("set")', caller);
    expect(first).toMatchObject({ success: true, result: { results: [], output: 'set\n', files: [] } });
    const name = String(first.result['sandbox']);
    expect(await interpret('rows', caller, { file_names: ['data.csv'] })).toMatchObject({
      success: false,
      error: expect.stringMatching(new RegExp(`data\\.csv\\. It has no files.*${name}`)),
    });
    await sandboxes().uploadFile(upload(name, 'data.csv', 'a,b\n1,2\n'));
    const code = 'rows = list(csv.reader(open("data.csv")))\nopen("out/sum.txt", "w").write(str(x + 1))\nrows';
    const ran = await interpret(`import os\nos.makedirs("out", exist_ok=True)\n${code}`, caller, { file_names: ['data.csv'] });
    expect(ran).toMatchObject({
      success: true,
      result: {
        results: [
          [
            ['a', 'b'],
            ['1', '2'],
          ],
        ],
        files: ['data.csv', 'out/sum.txt'],
        sandbox: name,
      },
    });
    const parts = await collect(sandboxes().downloadFile({ name, path: 'out/sum.txt' }));
    expect(Buffer.concat(parts.map(({ chunk }) => chunk)).toString()).toBe('42');
    expect(await interpret('1 / 0', caller)).toMatchObject({ success: false, error: 'ZeroDivisionError: division by zero (line 1)' });
    expect((await interpret('(x, "it\'s", x)[1]', caller)).result['results']).toEqual(["it's"]);
    await close(name);
  }, 60_000);

  it("is nobody else's, and nothing of it is in calls without a session", async () => {
    const mine = await interpret('secret = 7', { session: 'mine' });
    const others: Caller[] = [
      { session: 'mine', user: 'bob' },
      { session: 'mine', agent: 'other' },
      { session: 'mine', key: 'globex' },
    ];
    for (const other of [...others, {}]) {
      const seen = await interpret('secret', other);
      expect(seen).toMatchObject({ success: false, error: expect.stringContaining('NameError') });
      if (other.key === undefined && seen.result['sandbox'] !== undefined) await close(seen.result['sandbox']);
    }
    const id = String(mine.result['sandbox']).split('/')[1] ?? '';
    expect(await interpret('secret', { session: id, key: 'globex' })).toMatchObject({ success: false });
    await close(mine.result['sandbox']);
  }, 60_000);

  it('runs a repeated request once', async () => {
    const caller = { session: 'once', requestId: 'add-one' };
    const begun = await interpret('n = 0', { session: 'once' });
    expect(await interpret('n += 1\nn', caller)).toEqual(await interpret('n += 1\nn', caller));
    expect((await interpret('n', { session: 'once' })).result['results']).toEqual([1]);
    await close(begun.result['sandbox']);
  }, 60_000);

  it('opens another sandbox where its own has ended, and says so', async () => {
    const caller = { session: 'ends' };
    const first = await interpret('x = 1', caller);
    await close(first.result['sandbox']);
    const next = await interpret('x', caller);
    expect(next).toMatchObject({ success: false, result: { note: expect.stringContaining('has ended, with its names and files') } });
    expect(next.result['sandbox']).not.toBe(first.result['sandbox']);
    await close(next.result['sandbox']);
  }, 60_000);

  it('may be a sandbox that its caller opened, by its id', async () => {
    const { name } = await sandboxes().createSandbox({});
    await sandboxes().uploadFile(upload(name, 'a.txt', 'hello'));
    const session = name.split('/')[1] ?? '';
    expect(await interpret('open("a.txt").read()', { session }, { file_names: ['a.txt'] })).toMatchObject({
      success: true,
      result: { results: ['hello'], files: ['a.txt'], sandbox: name },
    });
    await close(name);
    expect(await interpret('1', { session })).toMatchObject({ success: false, error: expect.stringContaining('is closed') });
  }, 60_000);

  it('has the loaded functions in reach', async () => {
    const draft = {
      name: 'slug',
      description: 'Makes a slug of a title.',
      code: 'def slug(text: str) -> str:\n    """Makes a slug."""\n    return "-".join(text.lower().split())\n',
      tests: [
        { args: ['Hello World'], expected: 'hello-world' },
        { args: [''], expected: '' },
      ],
    };
    expect(await call('register_skill', draft)).toMatchObject({ result: { status: 'registered' } });
    const caller = { session: 'loads' };
    await call('load_functions', { names: ['slug'] }, caller);
    const ran = await interpret('made = slug("A B")\nmade', caller);
    expect(ran).toMatchObject({ success: true, result: { results: ['a-b'] } });
    await close(ran.result['sandbox']);
  }, 60_000);

  it('runs afresh and says why where a tenant has as many sandboxes open as tools may open', async () => {
    const own = await Promise.all(Array.from({ length: OPEN_MAX }, () => sandboxes().createSandbox({})));
    const ran = await interpret('1 + 1', { session: 'full' });
    expect(ran).toMatchObject({
      success: true,
      result: { results: [2], files: [], note: expect.stringContaining('6 sandboxes are open') },
    });
    expect(ran.result['sandbox']).toBeUndefined();
    await Promise.all(own.map(({ name }) => close(name)));
  }, 60_000);

  it('ends with the erasure of whose it is', async () => {
    const { result } = await interpret('secret = "of ann"', { session: 'hers', user: 'ann' });
    const removed = await new QueueErasure(rig.producer, { skillIsGone: async () => true }).erase('acme', { user: 'ann' }, never);
    expect(removed).toMatchObject({ 'queue.tool-sessions': 1 });
    await until(async () => !(await openNames()).includes(String(result['sandbox'])), { what: 'the sandbox to end' });
    expect((await interpret('secret', { session: 'hers', user: 'ann' })).success).toBe(false);
  }, 60_000);
});
