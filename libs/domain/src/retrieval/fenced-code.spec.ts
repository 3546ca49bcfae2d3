import { expect, it } from 'vitest';
import { transitionOf } from '../../test/memory-records.js';
import { fenced, transitionEntry, withoutCode } from './entries.js';

it.each(['x = 1', 'def f():\n    """\n```\nno end\n"""', '````'])('removes exactly the code that was fenced: %j', (code) => {
  expect(withoutCode(`before\n\n${fenced(code)}\n\nafter`)).toBe('before\n\nafter');
});

it('removes an unfinished block to its end', () => {
  expect(withoutCode('before\n```python\nx = 1')).toBe('before');
});

it('shows the code of an accepted attempt whole, and of a failed one none', () => {
  const code = 'def total(xs): ...';
  expect(transitionEntry(transitionOf({ code })).text).toContain(fenced(code));
  const failed = transitionEntry(transitionOf({ code, verdict: 'WA', feedback: 'expected 4, got 5' })).text;
  expect(failed).not.toContain(code);
  expect(failed).toContain('expected 4, got 5');
  expect(transitionEntry(transitionOf({ code: code.repeat(200) })).text).not.toContain(code);
});
