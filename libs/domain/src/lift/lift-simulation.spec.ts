import type { FoundItem, ItemShows } from '@etude/contracts/memory';
import { expect, it } from 'vitest';
import { addSides, isHarmful, isWithheld, NO_SHOWS, probabilityOf, reasonToArchive, successEffect } from './effects.js';

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

/** The life of one item of a known effect: rollouts draw, end right or wrong, and upkeep looks every 20 rollouts. */
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
    effect,
    covered: share(({ isCovered }) => isCovered),
    found: share(({ isFound }) => isFound),
    archived: share(({ isArchived }) => isArchived),
    withheld: lives.reduce((sum, { withheld }) => sum + withheld, 0) / ITEMS,
  };
}

const percent = (value: number) => `${(value * 100).toFixed(1)}%`;

it('covers the true effects, and finds harmful items within 300 rollouts', () => {
  const [harmful, harming, neutral, helpful] = [simulate(-0.2), simulate(-0.1), simulate(0), simulate(0.1)];
  const rows = [harmful, harming, neutral, helpful];
  const lines = rows.map((row) =>
    [row.effect.toFixed(1), ...[row.covered, row.found, row.archived, row.withheld].map(percent)].join(' | '),
  );
  process.stdout.write(`effect | covered | found within 300 | archived within 600 | withheld\n${lines.join('\n')}\n`);
  for (const { covered } of rows) {
    expect(covered).toBeGreaterThan(0.93);
    expect(covered).toBeLessThan(0.97);
  }
  expect(harmful.found).toBeGreaterThan(0.85);
  expect(neutral.archived).toBeLessThan(0.1);
  expect(helpful.archived).toBeLessThan(0.01);
  expect(helpful.withheld).toBeLessThan(0.1);
});
