import { expect, it } from 'vitest';
import { SessionTurns } from './session-turns.js';

const never = new AbortController().signal;

/** Work that ends when it is told to, and notes when it begins. */
function pieces(turns: SessionTurns) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const take = (name: string, signal = never, session = 's') =>
    turns.take(
      session,
      () => {
        begun.push(name);
        return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
      },
      signal,
    );
  return { begun, take, end: (name: string) => ends.get(name)?.() };
}

it('lets calls of a session run one by one, in the order in which they came, beside those of others', async () => {
  const { begun, take, end } = pieces(new SessionTurns());
  const all = ['a', 'b', 'c'].map((name) => take(name));
  const other = take('other', never, 't');
  await expect.poll(() => begun).toEqual(['a', 'other']);
  for (const [i, name] of ['a', 'b', 'c'].entries()) {
    await expect.poll(() => begun.at(-1) === name || begun.includes(name)).toBe(true);
    end(name);
    expect(await all[i]).toBe(name);
  }
  end('other');
  await other;
  expect(begun).toEqual(['a', 'other', 'b', 'c']);
});

it('goes on behind one that failed, and begins nothing of who has given up', async () => {
  const turns = new SessionTurns();
  const { begun, take, end } = pieces(turns);
  const gone = new AbortController();
  const [first, failing, left, last] = [
    take('a'),
    turns.take('s', () => Promise.reject(new Error('no')), never),
    take('b', gone.signal),
    take('c'),
  ];
  gone.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  await expect(take('d', gone.signal)).rejects.toThrow('gone');
  end('a');
  await first;
  await expect(failing).rejects.toThrow('no');
  await expect.poll(() => begun).toEqual(['a', 'c']);
  end('c');
  await last;
});
