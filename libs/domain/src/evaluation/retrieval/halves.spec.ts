import { describe, expect, it } from 'vitest';
import { halfOf } from './metrics.js';

describe('halfOf', () => {
  it('parts any ids into two halves of about one size, always the same', () => {
    const halves = Array.from({ length: 1_000 }, (_, i) => halfOf(`q${i}`));
    const chosen = halves.filter((half) => half === 'choose').length;
    expect(chosen).toBeGreaterThan(450);
    expect(chosen).toBeLessThan(550);
    expect([halfOf('a'), halfOf('b'), halfOf('c')]).toEqual(['report', 'choose', 'choose']);
  });
});
