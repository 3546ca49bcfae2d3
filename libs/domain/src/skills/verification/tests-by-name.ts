import type { SkillTest } from '@etude/contracts/memory';

/**
 * Tests that call a function by one name, for code that has another. The name is given on the side of the tests, which run in a process
 * of their own: code that finds it among its own names would know whose tests it is held to.
 */
export function testsByName(tests: readonly SkillTest[], called: string | null, name: string | null): readonly SkillTest[] {
  if (called === name || called === null || name === null) return tests;
  return tests.map((test) => (test.kind === 'python' ? { ...test, tests: withName(test.tests, `${called} = ${name}\n`) } : test));
}

/** Python takes imports from `__future__` before all other statements. */
function withName(tests: string, line: string): string {
  const [future = ''] = /^(?:(?:from __future__ import .*|#.*|[ \t]*)\n)*/.exec(tests) ?? [];
  return `${future}${line}${tests.slice(future.length)}`;
}
