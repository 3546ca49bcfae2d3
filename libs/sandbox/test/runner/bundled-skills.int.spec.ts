import { bundledCode, dependencyOn } from '@etude/domain/skills/proof/bundle-code';
import { skillOf } from '@etude/domain/testing/bundle-fixture';
import { describe, expect, it } from 'vitest';
import { call, checked, program, useSandboxes } from '../sandbox-fixture.js';

const sandboxes = useSandboxes();
const increment = skillOf('increment', 'def increment(x):\n    return x + 1');
const twice = skillOf('twice', 'import skills\ndef twice(x):\n    return skills.increment(skills.increment(x))', {
  dependencies: [dependencyOn(increment)],
});
const bundle = (code: string) => bundledCode(code, [increment, twice]);

describe('code that calls skills', () => {
  it('runs as a program, a call, and an answer that is checked', async () => {
    const code = 'from __future__ import annotations\nfrom skills import twice\n\ndef f(x):\n    return twice(x)\n';
    expect(await sandboxes.one(program(bundle(`${code}print(f(int(input())))`), '3'))).toMatchObject({ exit: 'ok', stdout: '5\n' });
    expect(await sandboxes.one(call(bundle(code), [3]))).toMatchObject({ exit: 'ok', value: 5 });
    expect(await sandboxes.one(checked(bundle(code), 'assert f(3) == 5'))).toMatchObject({ exit: 'ok', passed: true });
    expect(await sandboxes.one(checked(bundle(code), 'assert f(3) == 6'))).toMatchObject({ passed: false });
  });

  it('reports lines of the code, not of the bundled skills', async () => {
    const code = 'from skills import twice\n\ndef f(x):\n    y = 1\n    return twice(x)\n';
    expect((await sandboxes.one(call(bundle(code), ['a']))).error).toMatchObject({ type: 'TypeError', line: 5 });
    expect((await sandboxes.one(checked(bundle(code), 'f("a")'))).error).toMatchObject({ type: 'TypeError', line: 5 });
    expect((await sandboxes.one(program(bundle(`${code}f(None)\n`)))).stderr).toMatch(
      /File "solution.py", line 5, in f\n\s+return twice\(x\)/,
    );
  });
});
