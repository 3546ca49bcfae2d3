import { describe, expect, it } from 'vitest';
import { checkScript, type ScriptInput } from './script.js';
import { conversationOf, filled, ScriptMatcher } from './script-matching.js';

function asking(script: ScriptInput) {
  const matcher = new ScriptMatcher(checkScript(script));
  return (...contents: string[]) => {
    const roles: Record<string, string> = { system: 'system', me: 'assistant' };
    const messages = contents.map((content) => ({ role: roles[content.split(' ')[0] ?? ''] ?? 'user', content }));
    const match = matcher.match(conversationOf({ messages }));
    return match ? (match.answer.status ?? filled(match.answer.reply ?? '', match.captures)) : null;
  };
}

describe('script rules', () => {
  it('answer by the first rule that fits, otherwise by the default, otherwise not', () => {
    const ask = asking({
      rules: [
        { match: 'sum', reply: '1' },
        { match: 'su', reply: '2' },
      ],
    });
    expect([ask('the sum'), ask('sure'), ask('else')]).toEqual(['1', '2', null]);
    expect(asking({ default: { reply: 'd' } })('else')).toBe('d');
  });

  it('match the last user message, any message, or the system prompt', () => {
    const ask = asking({
      rules: [
        { system: 'critic', reply: 'system' },
        { match_all: ['first', 'me '], unless: 'stop', reply: 'all' },
        { match: 'last', reply: 'last' },
      ],
    });
    expect(ask('system be a critic', 'q')).toBe('system');
    expect(ask('first', 'me hm', 'q')).toBe('all');
    expect(ask('first', 'me hm', 'stop')).toBeNull();
    expect(ask('last', 'me hm', 'q')).toBeNull();
    expect(ask('q', 'me hm', 'last')).toBe('last');
  });

  it('put groups of regular expressions into the reply, and keep other braces', () => {
    const ask = asking({
      rules: [{ match: { regex: 'add (\\d+) and (?<b>\\d+)', flags: 'i' }, reply: 'print({{1}} + {{b}}, f"{{x}}", {{}}, {{9}})' }],
    });
    expect(ask('Add 2 and 3')).toBe('print(2 + 3, f"{{x}}", {{}}, {{9}})');
  });

  it('give a repeated body the same attempt', () => {
    const ask = asking({
      rules: [
        { match: 'task', attempt: 1, reply: 'wrong' },
        { match: 'task', attempt: 2, reply: 'right' },
        { match: 'task', reply: 'later' },
      ],
    });
    expect([ask('task'), ask('task'), ask('task again'), ask('task'), ask('task again'), ask('task thrice')]).toEqual([
      'wrong',
      'wrong',
      'right',
      'wrong',
      'right',
      'later',
    ]);
  });

  it('count attempts per key', () => {
    const pattern = { regex: 'task (?<id>\\w)' };
    const ask = asking({
      rules: [
        { match: pattern, key: '{{id}}', attempt: 1, reply: 'first {{id}}' },
        { match: pattern, reply: 'second {{id}}' },
      ],
    });
    expect([ask('task a'), ask('task b'), ask('task a critique'), ask('task b critique'), ask('task a')]).toEqual([
      'first a',
      'first b',
      'second a',
      'second b',
      'first a',
    ]);
  });

  it('fail each body as often as the rule says, then answer it', () => {
    const ask = asking({ rules: [{ status: 503, times: 2 }, { reply: 'ok' }] });
    expect([ask('a'), ask('a'), ask('b'), ask('a'), ask('b'), ask('b')]).toEqual([503, 503, 503, 'ok', 503, 'ok']);
    const silent = asking({ rules: [{ empty: true, times: 1 }, { reply: 'ok' }] });
    expect([silent('a'), silent('a')]).toEqual(['', 'ok']);
  });

  it('answer only as many different bodies as the rule says', () => {
    const ask = asking({ rules: [{ times: 1, reply: 'one' }, { reply: 'rest' }] });
    expect([ask('a'), ask('b'), ask('a')]).toEqual(['one', 'rest', 'one']);
  });
});
