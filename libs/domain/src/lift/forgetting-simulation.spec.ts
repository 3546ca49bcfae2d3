import type { Skill } from '@etude/contracts/memory';
import { expect, it } from 'vitest';
import { skillOf, skillUseOf } from '../../test/memory-records.js';
import { afterUse } from '../retrieval/reinforce.js';
import { afterOffers } from '../skills/life/usage.js';
import { keepsItsPlace, offerScore } from './effects.js';

const DAYS = 30;
const ROLLOUTS_A_DAY = 40;
const OFFERED = 3;
/** Skills that a rollout's task is near to. */
const NEAR = 8;
const KEY = { tenant: 'acme', agent: 'coder', user: null, name: 's', version: 1 };

/** How often tasks are near to a skill of this kind, and how often it is used where it is offered. */
const KINDS = {
  frequent: { count: 20, near: 1, used: 0.4 },
  seldom: { count: 15, near: 1, used: 0.08 },
  rare: { count: 15, near: 0.04, used: 0.6 },
  idle: { count: 50, near: 1, used: 0 },
};
type Kind = keyof typeof KINDS;

interface Life {
  readonly kind: Kind;
  skill: Skill;
  shown: number;
  used: number;
}

/** mulberry32: numbers from 0 to 1 that are the same in every run. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const livesOf = (part: number) =>
  (Object.keys(KINDS) as Kind[]).flatMap((kind) =>
    Array.from({ length: KINDS[kind].count * part }, (): Life => ({ kind, skill: skillOf({ status: 'active' }), shown: 0, used: 0 })),
  );

/** A month of rollouts. Each is near to some skills, is offered the best of them and uses them by chance. */
function month(library: readonly Life[], random: () => number, forgets = true): readonly Life[] {
  for (let rollout = 0; rollout < DAYS * ROLLOUTS_A_DAY; rollout += 1) {
    const drawn = library.map((life) => ({ life, luck: random() / KINDS[life.kind].near })).toSorted((a, b) => a.luck - b.luck);
    const found = drawn.slice(0, NEAR).map(({ life }) => ({ life, similarity: 0.6 + 0.4 * random() }));
    const kept = found.filter(({ life }) => !forgets || keepsItsPlace(life.skill, null));
    const scored = kept.map(({ life, similarity }) => ({ life, score: forgets ? offerScore(similarity, life.skill, null) : similarity }));
    for (const { life } of scored.toSorted((a, b) => b.score - a.score).slice(0, OFFERED)) {
      life.shown += 1;
      life.skill = afterOffers(life.skill, [KEY]);
      if (random() >= KINDS[life.kind].used) continue;
      life.used += 1;
      life.skill = afterUse(life.skill, skillUseOf({ at: rollout }));
    }
  }
  return library;
}

const shown = (lives: readonly Life[]) => lives.reduce((sum, life) => sum + life.shown, 0);
const unused = (lives: readonly Life[]) => lives.filter((life) => life.used === 0 && life.shown > 0);
const shareOfShows = (lives: readonly Life[]) => shown(unused(lives)) / shown(lives);
const shareOfShown = (lives: readonly Life[]) => unused(lives).length / lives.filter((life) => life.shown > 0).length;
const ofKind = (lives: readonly Life[], kind: Kind) => lives.filter((life) => life.kind === kind);
const usesOf = (lives: readonly Life[]) => lives.reduce((sum, { used }) => sum + used, 0);
const lostOf = (lives: readonly Life[]) => lives.filter((life) => !keepsItsPlace(life.skill, null)).length;
const percent = (value: number) => `${(value * 100).toFixed(1)}%`;

it('offers few skills that are never used, and loses no useful ones', () => {
  const all = month(livesOf(1), numbersFrom(20_261_128), false);
  const random = numbersFrom(20_261_128);
  const kept = month(livesOf(1), random);
  const rows = (Object.keys(KINDS) as Kind[]).map((kind) => {
    const [before, after] = [ofKind(all, kind), ofKind(kept, kind)];
    return `${kind} | ${before.length} | ${usesOf(before)} | ${usesOf(after)} | ${lostOf(after)}`;
  });
  process.stdout.write(`kind | skills | uses if all are offered | uses | lost\n${rows.join('\n')}\n`);
  const later = month([...kept.map((life) => ({ ...life, shown: 0, used: 0 })), ...livesOf(0.1)], random);
  process.stdout.write(`never used: ${percent(shareOfShows(all))} -> ${percent(shareOfShows(kept))} of the offers of the first month, `);
  process.stdout.write(`${percent(shareOfShown(later))} of the skills shown in the second\n`);
  expect(shareOfShows(all)).toBeGreaterThan(0.5);
  expect(shareOfShows(kept)).toBeLessThan(0.2);
  expect(shareOfShown(later)).toBeLessThan(0.2);
  expect([lostOf(ofKind(kept, 'frequent')), lostOf(ofKind(kept, 'rare'))]).toEqual([0, 0]);
  expect(usesOf(kept)).toBeGreaterThan(1.5 * usesOf(all));
});
