import type { FoundItem, ItemShows, Skill } from '@etude/contracts/memory';
import { expect, it } from 'vitest';
import {
  addSides,
  isHarmful,
  isWithheld,
  keepsItsPlace,
  NO_SHOWS,
  offerScore,
  probabilityOf,
  reasonToArchive,
  successEffect,
} from './effects.js';
import { skillOf, skillUseOf } from '../../test/memory-records.js';
import { afterOffers, afterUse } from '../skills/life/usage.js';

const BASE = 0.7;
const PROBABILITY = 0.05;
const ITEMS = 1_000;
const ROLLOUTS = 300;
const MORE_ROLLOUTS = 600;
const NIGHTLY = 20;

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

/** The life of one item with a known effect. Each rollout draws whether it is shown the item. Upkeep checks the item every 20 rollouts. */
function live(item: FoundItem, effect: number, random: () => number) {
  let sides: Pick<ItemShows, 'shown' | 'withheld'> = { shown: NO_SHOWS, withheld: NO_SHOWS };
  let [isFound, isArchived, after300]: [boolean, boolean, typeof sides] = [false, false, sides];
  for (let rollout = 1; rollout <= MORE_ROLLOUTS; rollout += 1) {
    const side = isWithheld(`t${rollout}-r1`, item, probabilityOf(sides, PROBABILITY)) ? 'withheld' : 'shown';
    const right = random() < BASE + (side === 'shown' ? effect : 0) ? 1 : 0;
    sides = { ...sides, [side]: addSides(sides[side], { n: 1, right, tokens: 0, tokensSquared: 0 }) };
    if (rollout <= ROLLOUTS) isFound ||= isHarmful(sides);
    if (rollout === ROLLOUTS) after300 = sides;
    if (rollout % NIGHTLY === 0) isArchived ||= reasonToArchive(sides) !== null;
  }
  const { low, high } = successEffect(after300)!;
  return { isFound, isArchived, isCovered: low <= effect && effect <= high, withheld: after300.withheld.n / ROLLOUTS };
}

function simulate(effect: number) {
  const random = numbersFrom(20_260_501 + effect * 100);
  const lives = Array.from({ length: ITEMS }, (_, n) =>
    live({ layer: 'semantic', kind: 'fact', id: `f${n}`, owner: { agent: `effect${effect}`, user: null } }, effect, random),
  );
  const share = (of: (life: (typeof lives)[number]) => boolean) => lives.filter(of).length / ITEMS;
  return {
    covered: share(({ isCovered }) => isCovered),
    found: share(({ isFound }) => isFound),
    archived: share(({ isArchived }) => isArchived),
    withheld: lives.reduce((sum, { withheld }) => sum + withheld, 0) / ITEMS,
  };
}

it('covers the true effects, and finds harmful items within 300 rollouts', () => {
  const [harmful, harming, neutral, helpful] = [simulate(-0.2), simulate(-0.1), simulate(0), simulate(0.1)];
  for (const { covered } of [harmful, harming, neutral, helpful]) {
    expect(covered).toBeGreaterThan(0.93);
    expect(covered).toBeLessThan(0.97);
  }
  expect(harmful.found).toBeGreaterThan(0.85);
  expect(neutral.archived).toBeLessThan(0.1);
  expect(helpful.archived).toBeLessThan(0.01);
  expect(helpful.withheld).toBeLessThan(0.1);
});

const DAYS = 30;
const ROLLOUTS_A_DAY = 40;
const OFFERED = 3;
/** Number of skills that are similar to the task of a rollout. */
const NEAR = 8;
const KEY = { tenant: 'acme', agent: 'coder', user: null, name: 's', version: 1 };

/** For each kind of skill: how often tasks are similar to the skill, and how often the skill is used when it is offered. */
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

const livesOf = (part: number) =>
  (Object.keys(KINDS) as Kind[]).flatMap((kind) =>
    Array.from({ length: KINDS[kind].count * part }, (): Life => ({ kind, skill: skillOf({ status: 'active' }), shown: 0, used: 0 })),
  );

/** A month of rollouts. Each rollout is offered the best of the skills that are similar to its task, and uses them by chance. */
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
it('offers few skills that are never used, and loses no useful ones', () => {
  const all = month(livesOf(1), numbersFrom(20_261_128), false);
  const random = numbersFrom(20_261_128);
  const kept = month(livesOf(1), random);
  const later = month([...kept.map((life) => ({ ...life, shown: 0, used: 0 })), ...livesOf(0.1)], random);
  expect(shareOfShows(all)).toBeGreaterThan(0.5);
  expect(shareOfShows(kept)).toBeLessThan(0.2);
  expect(shareOfShown(later)).toBeLessThan(0.2);
  expect([lostOf(ofKind(kept, 'frequent')), lostOf(ofKind(kept, 'rare'))]).toEqual([0, 0]);
  expect(usesOf(kept)).toBeGreaterThan(1.5 * usesOf(all));
});
