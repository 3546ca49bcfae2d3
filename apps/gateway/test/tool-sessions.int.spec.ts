import type { JsonObject } from '@bufbuild/protobuf';
import { Sandboxes, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { ControllerDirectory } from '@etude/queue/controller-directory';
import { QueueErasure } from '@etude/queue/erasure/queue-erasure';
import { SandboxSessionStore } from '@etude/queue/sandbox-sessions';
import { RedisToolSessions } from '@etude/queue/tool-sessions';
import type { TestProcess } from '@etude/test-support/processes';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ControllerChannels } from '../src/sandboxes/controller-channels.js';
import { SandboxRouter } from '../src/sandboxes/sandbox-router.js';
import { SandboxCodeSessions } from '../src/tools/sandbox-code-sessions.js';
import { collect, GatewayRig, type KeyName } from './gateway.harness.js';
import { writeProofKeys } from './skill-store.js';
import { startWorkers } from './skill-workers.js';

const rig = new GatewayRig();
const { signingPath, publicPath } = writeProofKeys(rig.dir);
const OPEN_MAX = 6;
const INTERNAL_TOKEN = 'a-token-of-this-test';
let workers: TestProcess[] = [];
beforeAll(async () => {
  const settings = {
    ETUDE_SKILLS_ENABLED: 'true',
    ETUDE_SKILLS_AUTO_REGISTER: 'true',
    ETUDE_SKILLS_APPROVAL: 'automatic',
    ETUDE_SKILLS_PUBLIC_KEYS_PATH: publicPath,
    ETUDE_SANDBOX_INTERNAL_TOKEN: INTERNAL_TOKEN,
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

const idOf = (name: unknown) => String(name).split('/')[1] ?? '';

const openNames = async () => (await sandboxes().listSandboxes({ state: SandboxState.OPEN })).sandboxes.map(({ name }) => name);

class PausedSessions extends RedisToolSessions {
  afterClaim = async () => {};

  override async claimSandbox(...args: Parameters<RedisToolSessions['claimSandbox']>) {
    const claim = await super.claimSandbox(...args);
    await this.afterClaim();
    return claim;
  }
}

/** As one gateway has it. */
function codeSessions(afterClaim = async () => {}): SandboxCodeSessions {
  const { redis, keys } = rig.producer;
  const known = new SandboxSessionStore(redis, keys);
  const channels = new ControllerChannels(INTERNAL_TOKEN);
  const router = new SandboxRouter({ sessions: known, directory: new ControllerDirectory(redis, keys), channels });
  onTestFinished(() => router.close());
  const sessions = Object.assign(new PausedSessions(redis, keys), { afterClaim });
  return new SandboxCodeSessions({ router, sandboxes: known, sessions, openMax: OPEN_MAX });
}

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

  it('finds a file beyond those that it tells', async () => {
    const caller = { session: 'many' };
    const made = await interpret('for i in range(1000): open(f"a{i:04}", "w").close()\nopen("z.csv", "w").close()', caller);
    expect(made.result['files']).toHaveLength(1_000);
    expect(await interpret('1', caller, { file_names: ['z.csv', './a0000'] })).toMatchObject({ success: true });
    expect(await interpret('1', caller, { file_names: ['z.csv', 'y.csv', '../x', '/etc/passwd', '.'] })).toMatchObject({
      success: false,
      error: expect.stringContaining('not in this session: y.csv, ../x, /etc/passwd, .. It has a0000'),
    });
    await close(made.result['sandbox']);
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

  it('has one sandbox, however many calls come at once', async () => {
    const before = await openNames();
    const settled = await Promise.allSettled(Array.from({ length: 8 }, (_, i) => interpret(`n${i} = ${i}`, { session: 'rush' })));
    const told = settled.map((one) => String(one.status === 'fulfilled' ? (one.value.result['sandbox'] ?? one.value.error) : one.reason));
    const names = new Set(told.filter((text) => text.startsWith('sandboxes/')));
    expect(names.size).toBe(1);
    for (const text of told.filter((one) => !names.has(one))) expect(text).toContain('which runs one at a time');
    expect((await openNames()).filter((name) => !before.includes(name))).toEqual([...names]);
    const ran = [...told.keys()].filter((i) => names.has(told[i] ?? ''));
    expect((await interpret(`[${ran.map((i) => `n${i}`).join(', ')}]`, { session: 'rush' })).result['results']).toEqual([ran]);
    await close([...names][0]);
  }, 60_000);

  it('has one sandbox, however many gateways open it at once', async () => {
    const before = await openNames();
    const key = { tenant: 'acme', agent: 'coder', user: null, session: 'gateways' };
    const gateways = Array.from({ length: 8 }, () => codeSessions());
    const openAll = async () => {
      const opened = await Promise.all(gateways.map((gateway) => gateway.open(key, undefined, never)));
      return opened.map((one): [string, boolean] => ('unavailable' in one ? [one.unavailable, false] : [one.sandbox, one.isReplaced]));
    };
    const first = await openAll();
    const [[name] = ['']] = first;
    expect(first).toEqual(first.map(() => [name, false]));
    expect((await openNames()).toSorted()).toEqual([...before, name].toSorted());
    await close(name);
    const next = await openAll();
    const [[other] = ['']] = next;
    expect(new Set(next.map(([one]) => one))).toEqual(new Set([other]));
    expect(next).toContainEqual([other, true]);
    expect((await openNames()).toSorted()).toEqual([...before, other].toSorted());
    await close(other);
  }, 60_000);

  it('has one sandbox where another gateway comes while it is being opened', async () => {
    const before = await openNames();
    const key = { tenant: 'acme', agent: 'coder', user: null, session: 'between' };
    let late = '';
    const early = codeSessions(async () => {
      const one = await codeSessions().open(key, 'other', never);
      late = 'unavailable' in one ? one.unavailable : one.sandbox;
    });
    expect(await early.open(key, undefined, never)).toMatchObject({ sandbox: late, isReplaced: false });
    expect((await openNames()).toSorted()).toEqual([...before, late].toSorted());
    await close(late);
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

  it('is refused the sandbox of another agent or user by its id', async () => {
    const hers = await interpret('secret = 7', { session: 'hers-alone', user: 'liz' });
    const { name: named } = await sandboxes().createSandbox({});
    await interpret('secret = 8', { session: idOf(named), user: 'liz' });
    for (const name of [hers.result['sandbox'], named]) {
      expect(await interpret('secret', { session: idOf(name), user: 'liz' })).toMatchObject({ success: true });
      for (const other of [{ user: 'bob' }, {}, { user: 'liz', agent: 'other' }])
        expect(await interpret('secret', { session: idOf(name), ...other })).toMatchObject({
          success: false,
          error: expect.stringContaining('is used by another agent or user'),
        });
      await close(name);
    }
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
    const { name: named } = await sandboxes().createSandbox({});
    await interpret('secret = "of ann"', { session: named.split('/')[1] ?? '', user: 'ann' });
    const removed = await new QueueErasure(rig.producer, { skillIsGone: async () => true }).erase('acme', { user: 'ann' }, never);
    expect(removed).toMatchObject({ 'queue.tool-sessions': 1, 'queue.sandboxes': 1 });
    for (const name of [String(result['sandbox']), named])
      await until(async () => !(await openNames()).includes(name), { what: 'the sandbox to end' });
    expect((await interpret('secret', { session: 'hers', user: 'ann' })).success).toBe(false);
  }, 60_000);
});
