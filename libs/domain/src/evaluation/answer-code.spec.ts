import { describe, expect, it } from 'vitest';
import { definesName, extractAnswer } from './answer-code.js';

const fenced = (code: string, language = 'python') => `\`\`\`${language}\n${code}\n\`\`\``;

describe('extractAnswer', () => {
  it('takes the fenced code and leaves the prose as thought', () => {
    expect(extractAnswer(`I sort first.\n\n${fenced('print(1)')}\n\nDone.`)).toEqual({
      thought: 'I sort first.\n\nDone.',
      code: 'print(1)',
    });
  });

  const first = fenced('def f():\n    return 1');
  it.each([
    ['keeps the indentation of a function body', fenced('    return x + 1\n'), '    return x + 1'],
    ['takes the last of several Python blocks', `${first}\nBetter:\n${fenced('def f():\n    return 2')}`, 'def f():\n    return 2'],
    ['takes the definition before an example of its use', `${first}\nUse it so:\n${fenced('print(f())')}`, 'def f():\n    return 1'],
    ['takes Python before other languages', `${fenced('print(1)')}\n${fenced('1', 'text')}`, 'print(1)'],
    ['takes another language where there is no Python', fenced('echo hi', 'sh'), 'echo hi'],
    ['reads a fence that is not closed to the end', 'Here:\n```python\nprint(1)\nprint(2)', 'print(1)\nprint(2)'],
    ['dedents a fence inside a list', '1. So:\n   ```python\n   if x:\n       y()\n   ```', 'if x:\n    y()'],
  ])('%s', (_, text, code) => {
    expect(extractAnswer(text)?.code).toBe(code);
  });

  it('takes the block that defines the entry point', () => {
    const text = `${first}\nTests:\n${fenced('def test_f():\n    assert f() == 1')}`;
    expect(extractAnswer(text, 'f')?.code).toContain('return 1');
  });

  it.each([
    'def f(x):\n    """Return the sum of all numbers in x."""\n    return sum(x)',
    'import sys\n\nfor line in sys.stdin:\n    print(line.strip())',
    'n = int(input())\nprint(n * 2)',
    'x: int = 3\nassert x == 3, "that is not what we wanted"\nprint(x)',
    'return [x for x in numbers if x not in seen]',
  ])('takes a text without a fence that starts like code: %j', (code) => {
    expect(extractAnswer(code)?.code).toBe(code);
  });

  it.each([
    '',
    '   \n',
    'I cannot solve this.',
    'The answer is 42, because six times seven is that.',
    '42',
    'Sure! For each element we add one.\nThen we return the sum.',
  ])('finds no code in %j', (text) => {
    expect(extractAnswer(text)).toBeNull();
  });

  it('reads a text of a thousand pages', () => {
    expect(extractAnswer(`${'Words without end. '.repeat(200_000)}\n${fenced('print(1)')}`)?.code).toBe('print(1)');
  });
});

describe('definesName', () => {
  it.each(['def f():', 'async def f():', 'class f:', 'f = lambda: 1', 'f: int = 1', 'from a import f', 'import a as f'])(
    'finds the name in %j',
    (code) => {
      expect(definesName(`${code}\n`, 'f')).toBe(true);
    },
  );

  it.each(['    def f():', 'f == 1', 'g = f(1)', 'def ff():', '    return f'])('does not find the name in %j', (code) => {
    expect(definesName(`${code}\n`, 'f')).toBe(false);
  });
});
