import { describe, expect, it } from 'vitest';
import { PythonSandboxes } from '../../../test/python-sandboxes.js';
import { type InspectedCode, inspectCode, type InspectionRequest, problemTexts } from './inspect-code.js';

const signal = new AbortController().signal;

async function inspect(code: string, asked: Partial<InspectionRequest> = {}) {
  const place = { sandboxes: new PythonSandboxes(), executionId: 'inspect', tenant: 'acme' };
  return inspectCode({ code, entryPoint: null, mutantsMax: 16, ...asked }, place, signal);
}
async function read(code: string, asked: Partial<InspectionRequest> = {}): Promise<InspectedCode> {
  const inspected = await inspect(code, asked);
  if ('problems' in inspected) throw new Error(problemTexts(inspected.problems).join('\n'));
  return inspected;
}
async function problems(code: string, asked: Partial<InspectionRequest> = {}): Promise<string[]> {
  const inspected = await inspect(code, asked);
  return 'problems' in inspected ? problemTexts(inspected.problems) : [];
}

describe('inspectCode', () => {
  it('reads parameters, types and defaults from the signature', async () => {
    const code = 'def parse(text: str, sep: "str" = ",", *, most: int | None = None, seen=frozenset()) -> list[list[str]]: ...';
    const { contract, entryPoint, kind } = await read(code);
    expect({ kind, entryPoint }).toEqual({ kind: 'function', entryPoint: 'parse' });
    expect(contract.parameters).toEqual([
      { name: 'text', type: 'str', description: '', required: true },
      { name: 'sep', type: 'str', description: '', required: false, defaultValue: ',' },
      { name: 'most', type: 'int | None', description: '', required: false, defaultValue: null },
      { name: 'seen', type: '', description: 'Default: frozenset()', required: false },
    ]);
    expect(contract.inputSchema).toEqual({
      type: 'object',
      properties: {
        text: { type: 'string' },
        sep: { type: 'string', default: ',' },
        most: { anyOf: [{ type: 'integer' }, { type: 'null' }], default: null },
        seen: { description: 'Default: frozenset()' },
      },
      required: ['text'],
      additionalProperties: false,
    });
    expect(contract.outputSchema).toEqual({ type: 'array', items: { type: 'array', items: { type: 'string' } } });
  });

  it.each([
    ['bool', { type: 'boolean' }],
    ['Any', {}],
    ['dict[str, int]', { type: 'object', additionalProperties: { type: 'integer' } }],
    ['tuple[int, str]', { type: 'array', prefixItems: [{ type: 'integer' }, { type: 'string' }], minItems: 2, maxItems: 2 }],
    ['tuple[int, ...]', { type: 'array', items: { type: 'integer' } }],
    ['set[str]', { type: 'array', items: { type: 'string' }, uniqueItems: true }],
    ['Optional[str]', { anyOf: [{ type: 'string' }, { type: 'null' }] }],
    ['Union[int, str, int]', { anyOf: [{ type: 'integer' }, { type: 'string' }] }],
    ['Literal["a", 1, None]', { enum: ['a', 1, null] }],
    ['typing.List["int"]', { type: 'array', items: { type: 'integer' } }],
  ])('gives %s as JSON Schema', async (type, schema) => {
    const { contract } = await read(`def f(a: ${type}): ...`);
    expect(contract.inputSchema['properties']).toEqual({ a: schema });
  });

  it('reads descriptions from the Args section', async () => {
    const text = 'Args:\n        a (int): the first\n            of two\n        *b: the rest\n\n    Returns:\n        c: nothing';
    const { contract } = await read(`def f(a, b):\n    """Does.\n\n    ${text}\n    """`);
    expect(contract.parameters.map(({ description }) => description)).toEqual(['the first of two', 'the rest']);
    expect(contract.docstring).toMatch(/^Does\./);
  });

  it('allows other arguments only with **kwargs', async () => {
    expect((await read('def f(a, **rest): ...')).contract.inputSchema).not.toHaveProperty('additionalProperties');
    expect((await read('f = lambda a, b=2: a', { entryPoint: 'f' })).contract).toMatchObject({ signature: 'def f(a, b=2)' });
    for (const signature of [
      "def f(a, b: str='x', /, c: int=60, *rest: int, d, e=1, g: float=0.5, **more: int) -> int",
      'def f(a=1, *, b: int=2)',
      'def f()',
    ])
      expect((await read(`${signature}:\n    return 1`)).contract.signature).toBe(signature);
  });

  it('finds the entry point', async () => {
    expect((await read('def a(): ...\ndef b(): ...', { entryPoint: 'a' })).entryPoint).toBe('a');
    expect((await read('def a(): ...\ndef b(): ...', { name: 'b' })).entryPoint).toBe('b');
    expect((await read('try:\n    import x\nexcept ImportError:\n    def only(): ...')).entryPoint).toBe('only');
    expect(await problems('def a(): ...\ndef b(): ...')).toEqual([expect.stringMatching(/^it has several functions \(a, b\)/)]);
    expect(await problems('def a(): ...', { entryPoint: 'b' })).toEqual(['it has no function "b" at its top level; it has a']);
    expect(await problems('\nasync def a(): ...')).toEqual([expect.stringMatching(/^line 2: a is async/)]);
  });

  it('reads a class as a snippet, and code without a function as a program', async () => {
    expect(await read('class A: ...')).toMatchObject({ kind: 'snippet', note: expect.stringContaining('the class A') });
    expect(await read('class A: ...', { entryPoint: 'A' })).toMatchObject({ kind: 'snippet', mutants: [] });
    expect(await read('print(input())')).toMatchObject({ kind: 'program', entryPoint: null });
  });

  it('names the skills that the code calls', async () => {
    const code = 'from skills import a, b as c\ndef f():\n    import skills as s\n    return s.d(a())';
    expect((await read(code)).uses).toEqual(['a', 'b', 'd']);
    expect(await problems('from skills import *\ndef f(): ...')).toEqual([
      expect.stringMatching(/^line 1: its import does not name the skills/),
    ]);
  });

  it('refuses actions at import by line (all cases: python/test/test_top_level.py)', async () => {
    expect(await problems('X = 1\nprint(X)\ndef f(): ...')).toEqual([
      'line 2: it runs print(X) when it is loaded: the top level holds imports, definitions and constants; move it into a function',
    ]);
  });

  it('allows a program to act at import', async () => {
    expect(await problems('def f(): ...\nprint(f())', { isProgram: true })).toEqual([]);
  });

  it.each([
    ['a mistake', 'x = 1\ny ==', /^line 2: it does not parse: SyntaxError/],
    ['deep nesting', `x = ${'('.repeat(500)}${')'.repeat(500)}`, /^line 1: it does not parse/],
    ['a long sum', `x = ${'1+'.repeat(60_000)}1`, /nested too deep|could not be parsed/],
    ['nothing', ' \n', /^it is empty$/],
    ['very much', `x = "${'a'.repeat(300_000)}"`, /^it has 300006 bytes; a skill has at most 262144$/],
  ])('refuses %s', async (_what, code, message) => {
    expect(await problems(code)).toEqual([expect.stringMatching(message)]);
  });

  it('never runs the code', async () => {
    const sandboxes = new PythonSandboxes();
    const inspected = await inspectCode({ code: 'import sys\nsys.exit("ran")\n', entryPoint: null }, { sandboxes, tenant: 'acme' });
    expect(inspected).toMatchObject({ kind: 'program' });
    const run = sandboxes.requests[0]?.runs[0];
    expect(run?.kind === 'program' && run.code).not.toContain('"ran"');
  });
});

describe('mutants', () => {
  const code = `
def f(items, most):
    """Text."""
    total = 0
    for at in range(len(items)):
        if at > most and not items[at]:
            raise ValueError("more than " + str(most))
        total += items[at] * 2
    print(f"{total + 1}")
    return items[
        :3]

def unused():
    return 1 + 1
`;
  it('break operators, comparisons, constants, conditions, returns, edges and statements', async () => {
    const { mutants } = await read(code, { entryPoint: 'f' });
    expect(mutants.map(({ what }) => what)).toEqual([
      'answers nothing',
      'line 4: 0 became (1)',
      'line 5: len(items) became (len(items) - 1)',
      'line 6: at > most became (at >= most)',
      'line 6: at > most and (not items[at]) became (at > most or not items[at])',
      'line 6: not items[at] became (items[at])',
      'line 8: total += items[at] * 2 became total -= items[at] * 2',
      'line 8: total += items[at] * 2 became pass',
      'line 8: items[at] * 2 became (items[at] + 2)',
      'line 8: 2 became (3)',
      "line 9: print(f'{total + 1}') became pass",
      'line 10: return items[:3] became return None',
      'line 11: 3 became (3 + 1)',
      'line 11: 3 became (4)',
    ]);
  });

  it('are also made of default arguments and class bodies', async () => {
    const kinds =
      'class Rate:\n    low = 2\n    def high(self, by=(3, 1)):\n        return by\n\ndef f(x, *, y=5 * x, z=lambda a: a + 7, most=60, least=-1):\n    return Rate.low + x + y';
    const whats = (await read(kinds, { entryPoint: 'f' })).mutants.map(({ what }) => what);
    const wanted = ['line 2: 2 became (3)', 'line 3: 3 became (4)', 'line 6: 5 * x became (5 + x)', 'line 6: a + 7 became (a - 7)'];
    for (const what of wanted) expect(whats).toContain(what);
    expect(whats.filter((what) => /60|-1/.test(what))).toEqual([]);
  });

  it('are distinct and always the same', async () => {
    const once = (await read(code, { entryPoint: 'f' })).mutants;
    expect(new Set([code, ...once.map((mutant) => mutant.code)]).size).toBe(once.length + 1);
    expect((await read(code, { entryPoint: 'f' })).mutants).toEqual(once);
    const long = `def f(x):\n${'    x = x * 2 + 1\n'.repeat(40)}    return x`;
    expect((await read(long)).mutants).toHaveLength(16);
  });
});
