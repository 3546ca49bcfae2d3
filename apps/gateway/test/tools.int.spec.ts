import type { JsonObject } from '@bufbuild/protobuf';
import { Sandboxes, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { jwtIssuer } from '@etude/test-support/jwt-issuer';
import { until } from '@etude/test-support/until';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { collect, documentOf, type KeyName, refusal } from './gateway.harness.js';
import { type Caller, skillsForFile, toolCalls } from './skill-workers.js';

const OPEN_MAX = 6;
const issuer = jwtIssuer();
const rig = skillsForFile(() => ({
  ...issuer.settings(rig.dir),
  ETUDE_JWT_USER_CLAIM: 'sub',
  ETUDE_SKILLS_AUTO_REGISTER: 'true',
  ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-this-test',
  ETUDE_TOOLS_SANDBOXES_OPEN_MAX: String(OPEN_MAX),
}));
const call = toolCalls(rig);

const interpret = (prompt: string, caller: Caller, more: JsonObject = {}) => call('code_interpreter', { prompt, ...more }, caller);
const sandboxes = (key: KeyName = 'acme') => rig.client(Sandboxes, key);
const close = (name: unknown) => sandboxes().closeSandbox({ name: String(name) });

const idOf = (name: unknown) => String(name).split('/')[1] ?? '';

const openNames = async () => (await sandboxes().listSandboxes({ state: SandboxState.OPEN })).sandboxes.map(({ name }) => name);

async function* upload(name: string, path: string, text: string) {
  yield { part: { case: 'header' as const, value: { name, path } } };
  yield { part: { case: 'chunk' as const, value: Buffer.from(text) } };
}

it('tools of memory remember a fact, and recall it and passages of documents', async () => {
  expect(await call('remember', { fact: 'The vault opens at nine.' })).toMatchObject({ success: true });
  const text = '# Vault\n\nThe vault is in the cellar.\n';
  await rig.client(Memory).importDocument(documentOf({ name: 'vault.md', agent: 'coder' }, text));
  const recalled = await until(
    async () => {
      const { result } = await call('recall', { query: 'where is the vault, and when does it open' });
      return (result['records'] as unknown[]).length >= 2 ? result : null;
    },
    { what: 'the fact in memory' },
  );
  expect(recalled['records']).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ kind: 'fact', text: 'The vault opens at nine.' }),
      expect.objectContaining({ kind: 'chunk', untrusted_origins: [expect.stringMatching('^documents/')] }),
    ]),
  );
  expect(await call('rag_query', { query: 'the cellar' })).toMatchObject({
    result: { answer: expect.stringContaining('in the cellar') },
  });
  for (const name of ['recall_fact', 'recall_similar_experience', 'recall_procedure'])
    expect(await call(name, { query: 'vault' })).toMatchObject({ success: true });
});

describe('a session of the code interpreter', () => {
  it('keeps variables and files, and exchanges files with the caller by name', async () => {
    const caller = { session: 'analysis' };
    const first = await interpret('import csv\nx = 41\nprint("set")', caller);
    expect(first).toMatchObject({ success: true, result: { results: [], output: 'set\n', files: [] } });
    const name = String(first.result['sandbox']);
    expect(await interpret('rows', caller, { file_names: ['data.csv'] })).toMatchObject({
      success: false,
      error: expect.stringMatching(new RegExp(`data\\.csv\\. The session has no files.*${name}`)),
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
    expect((await interpret('(x, "it\'s", x)[1]', caller)).result['results']).toEqual(["it's"]);
    await close(name);
  });

  it('is separate for each agent, user and tenant, and from calls without a session', async () => {
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
  });

  it('runs concurrent calls in one sandbox, one after another and once each', async () => {
    const before = await openNames();
    await interpret('ran = []', { session: 'rush' });
    const order = [...Array(8).keys()];
    const all = await Promise.all(order.map((i) => interpret(`ran.append(${i})\nlen(ran)`, { session: 'rush', requestId: `rush-${i}` })));
    expect(all).toMatchObject(order.map(() => ({ success: true, error: '' })));
    expect(new Set(all.map(({ result }) => (result['results'] as number[])[0]))).toEqual(new Set(order.map((i) => i + 1)));
    const name = all[0]?.result['sandbox'];
    expect(new Set(all.map(({ result }) => result['sandbox']))).toEqual(new Set([name]));
    expect((await openNames()).filter((one) => !before.includes(one))).toEqual([name]);
    // Repeated requests run nothing.
    await Promise.all(order.map((i) => interpret(`ran.append(${i})\nlen(ran)`, { session: 'rush', requestId: `rush-${i}` })));
    expect((await interpret('sorted(ran)', { session: 'rush' })).result['results']).toEqual([order]);
    await close(name);
  });

  it('is refused if its name is the id of a sandbox of another agent or user', async () => {
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
  });

  it('begins in no sandbox that its bound caller did not open', async () => {
    const bound = rig.clientWith(Tools, issuer.token({ sub: 'ida' }));
    const run = (session: string) => bound.callTool({ tool: 'code_interpreter', agent: 'coder', session, arguments: { prompt: '6 * 7' } });
    const { name } = await sandboxes().createSandbox({});
    expect(await run(idOf(name))).toMatchObject({ success: false, error: expect.stringContaining('is used by another agent or user') });
    const { result } = await run('of-ida');
    expect(await run(idOf(result?.['sandbox']))).toMatchObject({ success: true });
    await Promise.all([close(name), close(result?.['sandbox'])]);
  });

  it('runs in a new sandbox, with a note, if the tenant has the maximum of open sandboxes', async () => {
    const own = await Promise.all(Array.from({ length: OPEN_MAX }, () => sandboxes().createSandbox({})));
    const ran = await interpret('1 + 1', { session: 'full' });
    expect(ran).toMatchObject({
      success: true,
      result: { results: [2], files: [], note: expect.stringContaining('6 sandboxes are open') },
    });
    expect(ran.result['sandbox']).toBeUndefined();
    await Promise.all(own.map(({ name }) => close(name)));
  });
});

const SLUG = 'def slug(text: str, sep: str = "-") -> str:\n    """Makes a slug."""\n    return sep.join(text.lower().split())\n';

const agent = 'coder';
const register = (name: string, more: JsonObject = {}, caller: Caller = {}) =>
  call(
    'register_skill',
    {
      name,
      description: 'Makes a slug of a title.',
      code: SLUG,
      category: 'text.slugs',
      tests: [
        { args: ['Hello World'], expected: 'hello-world' },
        { kwargs: { text: 'A b C', sep: '_' }, expected: 'a_b_c' },
      ],
      ...more,
    },
    caller,
  );
const useBobs = (caller: Caller) => call('use_skill', { skill_id: 'slug_of_bob', parameters: { text: 'A' } }, caller);

it('etude.v1.Tools refuses a call without an agent, with a wrong session name, or with too large arguments', async () => {
  expect(await refusal(rig.client(Tools).callTool({ tool: 'search' }))).toMatchObject({
    status: status.INVALID_ARGUMENT,
    fields: ['agent'],
  });
  const tooMuch = rig.client(Tools).callTool({ tool: 'execute_code', agent, arguments: { code: 'x'.repeat(1_100_000) } });
  expect((await refusal(tooMuch)).code).toBe('PAYLOAD_TOO_LARGE');
  const badSession = rig.client(Tools).callTool({ tool: 'search', agent, session: 'a b' });
  expect(await refusal(badSession)).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['session'] });
});

describe('skills by tools', () => {
  it('are registered, found, used without a model, and loaded into a session', async () => {
    const registered = await register('slug');
    expect(registered).toMatchObject({
      success: true,
      result: { status: 'registered', skill_id: '/instances/acme/providers/Etude.Skill/skills/slug', version: 1, tests: 'given' },
    });
    expect((await call('search', { query: 'Makes a slug of a title.' })).result['skills']).toMatchObject([
      { name: 'slug', recommended: true, parameters: [{ name: 'text', type: 'str' }, { name: 'sep' }] },
    ]);
    expect(await call('use_skill', { skill_id: 'text.slugs.slug', parameters: { text: 'One Two' } })).toMatchObject({
      success: true,
      result: { skill: 'slug', version: 1, result: 'one-two' },
    });
    const session = { session: 's-load' };
    expect(await call('load_functions', { names: ['slug'] }, session)).toMatchObject({
      result: { functions: [{ name: 'slug', signature: expect.stringContaining('def slug(') }], loaded: ['slug'] },
    });
    const code = 'from skills import slug as again\n[slug("A B"), again("C D")]';
    expect(await call('execute_code', { code }, session)).toMatchObject({
      success: true,
      result: { result: ['a-b', 'c-d'], functions: ['slug'] },
    });
    expect(await call('execute_code', { code: '1 + 1\n\nslug(3)' }, session)).toMatchObject({
      success: false,
      error: expect.stringMatching(/AttributeError.*\(line 3\)$/),
    });
  });

  it('are found only by their own tenant, agent and user', async () => {
    await register('slug_of_bob', {}, { user: 'bob' });
    expect(await useBobs({ user: 'bob' })).toMatchObject({ success: true });
    for (const caller of [{ user: 'eve' }, {}, { agent: 'tester', user: 'bob' }, { key: 'globex' as const, user: 'bob' }])
      expect(await useBobs(caller)).toMatchObject({ success: false, error: 'Skill not found' });
  });
});
