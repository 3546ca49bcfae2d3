import { expect, it } from 'vitest';
import { Progress } from './progress.js';

function told(live: boolean): string[] {
  const lines: string[] = [];
  let now = 0;
  const out = { live, status: (text: string) => lines.push(`status ${text}`), note: (text: string) => lines.push(`note ${text}`) };
  const progress = new Progress(out, () => now);
  for (const at of [1, 9_999, 10_000, 15_000, 20_000]) {
    now = at;
    progress.tell(String(at));
  }
  return lines.filter((line) => line.startsWith('note'));
}

it('notes every ten seconds how far it is, off a terminal', () => {
  expect(told(false)).toEqual(['note 10000', 'note 20000']);
  expect(told(true)).toEqual([]);
});
