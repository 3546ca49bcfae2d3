import { describe, expect, it } from 'vitest';
import { literalOf } from './execute-in-session.js';
import { refusal, skillOf, startTools } from '../../test/tools-fixture.js';

const plain = (text: string) => ({ 'text/plain': text });

describe('code_interpreter in a session', () => {
  it("runs in the session's sandbox and lists its files", async () => {
    const { call, codeSessions, sandboxes } = startTools();
    codeSessions.held.push('a.csv', 'plot.png');
    const table = { 'text/plain': 'x', 'application/vnd.dataresource+json': { data: [{ a: 1 }] } };
    const displays = [plain('41'), { ...plain('[1]'), 'application/json': [1] }, table];
    codeSessions.cell = () => ({ stdout: 'hello\n', stderr: 'careful\n', displays });
    expect(await call('code_interpreter', { prompt: 'x', file_names: ['./a.csv'] })).toEqual({
      success: true,
      result: {
        results: [41, [1], { data: [{ a: 1 }] }],
        output: 'hello\n\ncareful\n',
        files: ['a.csv', 'plot.png'],
        sandbox: 'sandboxes/s12345678',
      },
    });
    expect(codeSessions.ran.map(({ code }) => code)).toEqual(['x']);
    expect(sandboxes.requests).toEqual([]);
  });

  it('names missing files and runs nothing', async () => {
    const { call, codeSessions } = startTools();
    codeSessions.held.push('a.csv');
    const outcome = await call('code_interpreter', { prompt: 'x', file_names: ['a.csv', 'b.csv'] });
    expect(outcome).toMatchObject(refusal(/not in this session: b\.csv\. The session has a\.csv\./));
    expect(codeSessions.ran).toEqual([]);
  });

  it('loads functions before the code runs', async () => {
    const { call, codeSessions } = startTools([skillOf('parse_csv')]);
    await call('load_functions', { names: ['parse_csv'] });
    codeSessions.template = 'numbers';
    await call('code_interpreter', { prompt: 'parse_csv("a")' });
    expect(codeSessions.ran.map(({ code }) => code)).toEqual(['# with parse_csv\nfrom skills import parse_csv\n', 'parse_csv("a")']);
    const [functions, code] = codeSessions.ran;
    expect(functions?.executionId).toBe(`${code?.executionId}-functions`);
  });

  it('runs nothing where the sandbox lacks the packages of a loaded function', async () => {
    const { call, codeSessions } = startTools([skillOf('parse_csv')]);
    await call('load_functions', { names: ['parse_csv'] });
    const outcome = await call('code_interpreter', { prompt: 'parse_csv("a")' });
    expect(outcome).toMatchObject(refusal(/parse_csv need packages/));
    expect(codeSessions.ran).toEqual([]);
  });

  it('reports the failure and the lost state of the session', async () => {
    const { call, codeSessions } = startTools();
    codeSessions.isReplaced = true;
    const error = { type: 'ZeroDivisionError', message: 'division by zero', line: 2 };
    codeSessions.cell = () => ({ exit: 'nonzero', exitCode: 1, error, stateLost: true });
    expect(await call('code_interpreter', { prompt: 'x' })).toMatchObject({
      success: false,
      error: 'ZeroDivisionError: division by zero (line 2)',
      result: { note: expect.stringMatching(/has ended, with its variables and files\. The interpreter was restarted/) },
    });
  });

  it('runs in a fresh sandbox if the session can have none', async () => {
    const { call, codeSessions } = startTools([], () => ({ value: { value: 3 } }));
    codeSessions.unavailable = 'too many are open';
    expect(await call('code_interpreter', { prompt: '1 + 2' })).toEqual({
      success: true,
      result: { results: [3], output: '', files: [], note: 'The session keeps nothing of this call: too many are open.' },
    });
    expect(await call('code_interpreter', { prompt: '1', file_names: ['data.csv'] })).toMatchObject(
      refusal(/"file_names".*data\.csv.*too many are open/),
    );
  });

  it('gives files of the session to a skill', async () => {
    const { call, codeSessions, fake } = startTools([skillOf('parse_csv')]);
    codeSessions.held.push('a.csv');
    const skill = { operation: 'use_skill', skill_name: 'parse_csv' };
    expect(await call('code_interpreter', { ...skill, file_names: ['./a.csv'] })).toMatchObject({ success: true });
    expect(fake.used.map(({ files }) => files)).toEqual([[{ path: 'a.csv', contentBase64: '' }]]);
    expect(await call('code_interpreter', { ...skill, file_names: ['b.csv'] })).toMatchObject(refusal('b.csv'));
    codeSessions.isTooLarge = true;
    expect(await call('code_interpreter', { ...skill, file_names: ['a.csv'] })).toMatchObject(refusal('8 MiB'));
    expect(fake.used).toHaveLength(1);
  });

  it('refuses files without a session', async () => {
    const { call } = startTools([skillOf('parse_csv')]);
    const unnamed = await call('code_interpreter', { prompt: '1', file_names: ['data.csv'] }, {}, { session: 'default' });
    expect(unnamed).toMatchObject(refusal(/data\.csv.*names no session/));
    const use = { operation: 'use_skill', skill_name: 'parse_csv', file_names: ['data.csv'] };
    expect(await call('code_interpreter', use, {}, { session: 'default' })).toMatchObject(refusal(/data\.csv.*names no session/));
  });
});

describe('literalOf', () => {
  it.each([
    ['41', 41],
    ['-1.5e-07', -1.5e-7],
    ['True', true],
    ["'it\\'s \\n\\u00e9 \"so\"'", 'it\'s \né "so"'],
    ["'\\x41'", "'\\x41'"],
    ['"it\'s"', "it's"],
    ['9007199254740993', '9007199254740993'],
    ['nan', 'nan'],
    ["{'a'}", "{'a'}"],
    ["'a' 'b'", "'a' 'b'"],
    ["b'a'", "b'a'"],
    [String.raw`'a\ud800'`, String.raw`'a\ud800'`],
  ])('reads %s', (repr, value) => {
    expect(literalOf(repr)).toEqual(value);
  });
});
