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

  it('keeps the indentation of a function body', () => {
    expect(extractAnswer(fenced('    return x + 1\n'))?.code).toBe('    return x + 1');
  });

  it('takes the last of several Python blocks', () => {
    expect(extractAnswer(`${fenced('def f():\n    return 1')}\nBetter:\n${fenced('def f():\n    return 2')}`)?.code).toContain('return 2');
  });

  it('takes the definition before an example of its use', () => {
    expect(extractAnswer(`${fenced('def f():\n    return 1')}\nUse it so:\n${fenced('print(f())')}`)?.code).toContain('def f');
  });

  it('takes the block that defines the entry point', () => {
    const text = `${fenced('def f():\n    return 1')}\nTests:\n${fenced('def test_f():\n    assert f() == 1')}`;
    expect(extractAnswer(text, 'f')?.code).toContain('return 1');
  });

  it('takes Python before other languages, and others where there is no Python', () => {
    expect(extractAnswer(`${fenced('print(1)')}\n${fenced('1', 'text')}`)?.code).toBe('print(1)');
    expect(extractAnswer(fenced('echo hi', 'sh'))?.code).toBe('echo hi');
  });

  it('reads a fence that is not closed to the end', () => {
    expect(extractAnswer('Here:\n```python\nprint(1)\nprint(2)')?.code).toBe('print(1)\nprint(2)');
  });

  it('dedents a fence inside a list', () => {
    expect(extractAnswer('1. So:\n   ```python\n   if x:\n       y()\n   ```')?.code).toBe('if x:\n    y()');
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

  it('survives a thousand pages', () => {
    expect(extractAnswer(`${'Words without end. '.repeat(200_000)}\n${fenced('print(1)')}`)?.code).toBe('print(1)');
  });
});

describe('definesName', () => {
  it.each(['def f():', 'async def f():', 'class f:', 'f = lambda: 1', 'f: int = 1', 'from a import f', 'import a as f'])(
    'sees the name in %j',
    (code) => {
      expect(definesName(`${code}\n`, 'f')).toBe(true);
    },
  );

  it.each(['    def f():', 'f == 1', 'g = f(1)', 'def ff():', '    return f'])('does not see it in %j', (code) => {
    expect(definesName(`${code}\n`, 'f')).toBe(false);
  });
});
