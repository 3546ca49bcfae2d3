import type { Skill } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bundledCode, loadFunctions, pinnedTo } from './bundle-code.js';
import { neededSkills } from '../life/call-graph.js';
import { errorOf, printed, provenSkillOf, registryOf, skillOf, TEST_SIGNER } from '../../../test/bundle-fixture.js';
import type { SkillOffer, SkillVersions } from '../../ports/memory.js';

const increment = skillOf('increment', 'def increment(x):\n    return x + 1');

describe('bundledCode', () => {
  it('lets code call skills by both forms of import', async () => {
    const code = 'from skills import increment\nimport skills\nprint(increment(1), skills.increment(2), skills.__all__)';
    expect(await printed(bundledCode(code, [increment]))).toBe("2 3 ['increment']");
  });

  it('keeps __future__ imports first', async () => {
    const code =
      '"""Says."""\nfrom __future__ import annotations\nfrom skills import increment\ndef f(x: Missing): return increment(x)\nprint(f(1), __doc__)';
    expect(await printed(bundledCode(code, [increment]))).toBe('2 Says.');
  });

  it('keeps line numbers', async () => {
    const code = `from skills import increment\n${'\n'.repeat(90)}def f():\n    return increment(None)  # here\n\nf()\n`;
    const trace = await printed(bundledCode(code, [increment]));
    expect(trace).toMatch(/line 93, in f\n.*File "skills\/increment@1.py", line 2, in increment/);
    expect(await printed(bundledCode('\n\nx = = 1', [increment]))).toMatch(/line 3\n\s+x = = 1/);
  });

  it('binds no names but the imported ones', async () => {
    const secret = skillOf('secret', 'hidden = 41\nkept = []\ndef secret():\n    kept.append(hidden)\n    return len(kept)');
    const code =
      'from skills import secret\nhidden = 0\nsecret()\nprint(secret(), hidden, sorted(n for n in globals() if not n.startswith("__")))';
    expect(await printed(bundledCode(code, [secret]))).toBe("2 0 ['hidden', 'secret']");
  });

  it('loads the pinned versions of a third skill for two callers', async () => {
    const newer = skillOf('increment', 'def increment(x):\n    return x + 100', { version: 2 });
    const one = skillOf('one', 'from skills import increment\ndef one(): return increment(0)', { needs: [increment] });
    const hundred = skillOf('hundred', 'def hundred():\n    import skills\n    return skills.increment(0)', { needs: [newer] });
    const all = skillOf('all', '', { needs: [one, newer, hundred, increment].slice(0, 3) });
    const needed = await neededSkills(registryOf(increment, newer, one, hundred), all);
    const code = 'from skills import one, hundred, increment\nprint(one(), hundred(), increment(0))';
    expect(await printed(bundledCode(code, needed, all.dependencies))).toBe('1 100 100');
  });

  it('runs dataclasses and pickles of a skill', async () => {
    const code =
      'from __future__ import annotations\nimport pickle\nfrom dataclasses import dataclass\n@dataclass\nclass Row:\n    x: int\ndef row(x): return pickle.loads(pickle.dumps(Row(x))).x';
    expect(await printed(bundledCode('from skills import row\nprint(row(7))', [skillOf('row', code)]))).toBe('7');
  });

  it('is valid Python for any code', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 30 }), async (text) => {
        const skill = skillOf('echo', `def echo():\n    return ${JSON.stringify(text)}`);
        const code = `from skills import echo\nprint(ascii(echo()) == ascii(${JSON.stringify(text)}), '''r"\\\\\\n''' is not None)`;
        expect(await printed(bundledCode(code, [skill]))).toBe('True True');
      }),
      { numRuns: 10 },
    );
  });
});

/** A chain of skills: each calls the next. */
function chain(length: number): Skill[] {
  const skills: Skill[] = [];
  for (let n = length; n >= 1; n -= 1) {
    const next = skills[0];
    const code = next ? `from skills import ${next.name}\ndef s${n}(x): return ${next.name}(x) + 1` : `def s${n}(x): return x`;
    skills.unshift(skillOf(`s${n}`, code, { needs: next ? [next] : [] }));
  }
  return skills;
}

describe('neededSkills', () => {
  it('finds needed skills at any depth, each once and after its callees', async () => {
    const skills = chain(40);
    const root = skillOf('root', 'from skills import s1\ndef root(x): return s1(x)', { needs: [0, 20].flatMap((n) => skills[n] ?? []) });
    const needed = await neededSkills(registryOf(...skills), root);
    expect(needed.map(({ name }) => name)).toEqual(skills.map(({ name }) => name).toReversed());
    expect(await printed(bundledCode(`${root.code}\nprint(root(1))`, needed))).toBe('40');
  });

  it('refuses a skill that needs more than 200 skills', async () => {
    const skills = chain(201);
    const caller = (first: number) => skillOf('root', 'x', { needs: skills.slice(first, first + 1) });
    expect(await neededSkills(registryOf(...skills), caller(1))).toHaveLength(200);
    expect(await errorOf(neededSkills(registryOf(...skills), caller(0)))).toMatch(/root needs more than 200 skills; make it need fewer/);
  });

  it('refuses a missing, changed, archived or unproven callee, and says what to do', async () => {
    const root = skillOf('root', 'x', { needs: [increment] });
    const refused = (...skills: Skill[]) => errorOf(neededSkills(registryOf(...skills), root));
    expect(await refused()).toMatch(/root needs increment@1, which no longer exists; register/);
    expect(await refused({ ...increment, code: 'def increment(x): return 0' })).toMatch(/content has another digest; restore it/);
    expect(await refused({ ...increment, status: 'archived', statusReason: 'withdrawn' })).toMatch(/is archived \(withdrawn\); restore it/);
    expect(await errorOf(neededSkills(registryOf(increment), root, () => false))).toMatch(
      /has no valid proof for its code; verify increment again/,
    );
    expect(await refused({ ...increment, status: 'deprecated' })).toBe('none');
  });

  it('refuses a callee that some readers can not read', async () => {
    const theirs = skillOf('increment', 'x', { scope: { ...increment.scope, user: 'bob' } });
    const elsewhere = skillOf('increment', 'x', { scope: { ...increment.scope, tenant: 'other' } });
    for (const other of [theirs, elsewhere])
      expect(await errorOf(neededSkills(registryOf(other), skillOf('root', 'x', { needs: [other] })))).toMatch(
        /some readers of root can't read/,
      );
    const own = skillOf('root', 'x', { needs: [theirs], scope: theirs.scope });
    expect(await errorOf(neededSkills(registryOf(theirs), own))).toBe('none');
  });
});

const reader = { tenant: 'acme', agent: 'solver', user: 'ann' };
const ADD = provenSkillOf('add', 'def add(a, b):\n    return a + b', { a: {}, b: {} });
const TWICE = provenSkillOf('twice', 'import skills\ndef twice(x):\n    return skills.add(x, x)', { x: {} }, { needs: [ADD] });
const PROGRAM = provenSkillOf('shout', 'print(1)', {}, { entryPoint: null });
const SHOWN = provenSkillOf('shown', 'def shown(): return 1', {}, { kind: 'snippet' });
const registry = registryOf(ADD, TWICE, PROGRAM, SHOWN, skillOf('unproven', 'def unproven(): ...'));
const offers: SkillOffer[] = [];
const procedural = { ...registry, countOffers: async (more: readonly SkillOffer[]) => void offers.push(...more) };
const deps = { procedural, checker: TEST_SIGNER, clock: { now: () => 7 } };

describe('loadFunctions', () => {
  it('loads several functions with their callees', async () => {
    const { functions, code } = await loadFunctions(reader, ['twice', 'add', 'twice'], deps);
    expect(functions).toEqual([
      { name: 'twice', version: 1, digest: TWICE.digest, signature: 'def twice(x)', description: 'Does what twice does.' },
      { name: 'add', version: 1, digest: ADD.digest, signature: 'def add(a, b)', description: 'Does what add does.' },
    ]);
    expect(await printed(`${code}print(twice(2), add(1, 2))`)).toBe('4 3');
  });

  it('refuses all where one is missing, a program or unproven', async () => {
    expect(await errorOf(loadFunctions(reader, ['add', 'x', 'y'], deps))).toMatch(/^NOT_FOUND: .*x, y/);
    expect(await errorOf(loadFunctions(reader, ['shout'], deps))).toMatch(
      /^FAILED_PRECONDITION: the code needs shout@1, which is a program/,
    );
    expect(await errorOf(loadFunctions(reader, ['unproven'], deps))).toMatch(/^FAILED_PRECONDITION: .*no valid proof/);
  });

  it('counts each requested function once, and none after a refusal', async () => {
    offers.length = 0;
    await errorOf(loadFunctions(reader, ['add', 'unproven'], deps));
    expect(offers).toEqual([]);
    await loadFunctions(reader, ['twice', 'twice'], deps);
    expect(offers).toEqual([{ ...TWICE.scope, name: 'twice', version: 1, loadedAt: 7 }]);
  });
});

const pins = (names: readonly string[], self: Skill, from = procedural as SkillVersions) =>
  pinnedTo(names, self, from).then(({ dependencies }) => dependencies);

describe('pinnedTo', () => {
  const mine = skillOf('mine', 'x', { scope: { ...ADD.scope, user: 'ann' } });
  const wide = skillOf('wide', 'x', { scope: { ...ADD.scope, agent: '@tenant' } });

  it('pins the active version and its digest', async () => {
    expect(await pins(['add', 'add'], mine, registryOf(ADD, { ...ADD, version: 3 }))).toEqual([
      { name: 'add', tenant: 'acme', agent: 'solver', user: null, version: 3, digest: ADD.digest },
    ]);
    expect(await pins(['add'], wide, registryOf({ ...ADD, scope: wide.scope }))).toMatchObject([{ agent: '@tenant' }]);
  });

  it.each([
    ['is missing', 'none', mine, /^FAILED_PRECONDITION: mine calls skills.none, but its readers see no active skill/],
    ['its readers can not read', 'add', wide, /its readers see no active skill of that name/],
    ['is itself', 'mine', mine, /mine -> mine/],
    ['calls it', 'twice', skillOf('add', 'x'), /add -> twice -> add/],
    ['is a program', 'shout', mine, /is a program/],
    ['is a snippet', 'shown', mine, /^FAILED_PRECONDITION: shown@1 is a snippet/],
  ])('refuses a skill that %s', async (_what, name, self, message) => {
    expect(await errorOf(pins([name], self))).toMatch(message);
  });
});
