import { describe, expect, it } from 'vitest';
import { SessionTurns } from './session-turns.js';

const never = new AbortController().signal;

/** Work that ends when it is told to, and notes when it begins. */
function pieces() {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const piece = (name: string) => (waited: boolean) => {
    begun.push(`${name}${waited ? ' waited' : ''}`);
    return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
  };
  return { begun, piece, end: (name: string) => ends.get(name)?.() };
}

describe('turns of a session', () => {
  it('come one by one, in the order in which they were asked for', async () => {
    const { begun, piece, end } = pieces();
    const turns = new SessionTurns();
    const all = ['a', 'b', 'c'].map((name) => turns.take('s', piece(name), never));
    const other = turns.take('t', piece('other'), never);
    expect(begun).toEqual(['a', 'other']);
    for (const [i, name] of ['a', 'b', 'c'].entries()) {
      end(name);
      expect(await all[i]).toBe(name);
    }
    end('other');
    await other;
    expect(begun).toEqual(['a', 'other', 'b waited', 'c waited']);
    const again = turns.take('s', piece('d'), never);
    expect(begun.at(-1)).toBe('d');
    end('d');
    await again;
  });

  it('go on after one that failed', async () => {
    const turns = new SessionTurns();
    const failing = turns.take('s', () => Promise.reject(new Error('no')), never);
    const next = turns.take('s', () => Promise.resolve(1), never);
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe(1);
  });

  it('are left by who gives up, and nothing of theirs is begun', async () => {
    const { begun, piece, end } = pieces();
    const turns = new SessionTurns();
    const gone = new AbortController();
    const [first, left, last] = [
      turns.take('s', piece('a'), never),
      turns.take('s', piece('b'), gone.signal),
      turns.take('s', piece('c'), never),
    ];
    gone.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    await expect(turns.take('s', piece('d'), gone.signal)).rejects.toThrow('gone');
    end('a');
    await first;
    end('c');
    await last;
    expect(begun).toEqual(['a', 'c waited']);
  });

  it('are refused beyond a bound, with what to do', async () => {
    const { piece, end } = pieces();
    const turns = new SessionTurns(1);
    const [first, second] = [turns.take('sandboxes/x', piece('a'), never), turns.take('sandboxes/x', piece('b'), never)];
    await expect(turns.take('sandboxes/x', piece('c'), never)).rejects.toMatchObject({
      code: 'SANDBOX_CAPACITY',
      details: { retryAfterMs: 1_000 },
      message: expect.stringMatching(/sandboxes\/x runs one call at a time, and 1 wait already; nothing of this one ran\. Send it again/),
    });
    end('a');
    await first;
    end('b');
    await second;
  });
});
