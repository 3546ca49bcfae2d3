import type { Fact } from '@etude/contracts/memory';
import { areNearWordings, relationOf, type Statement } from './contradiction.js';
import { isCurrent, merged, superseded, toldAgain } from './fact-changes.js';
import { lifeId } from './fact-id.js';
import { factTime, lastTold } from '../retrieval/reinforce.js';
import { haveOneSubject } from './statement-keys.js';

/** Calibrated similarity from which on two texts have nearly the same words. */
export const NEAR_WORDINGS_MIN = 0.9;

/** A stored fact of the same owner, current or not, that was found for one that is told. */
export interface KnownFact {
  readonly fact: Fact;
  readonly statement: Statement;
  /** Ids of writes that it has taken in. */
  readonly taken: ReadonlySet<string>;
  /** Calibrated, of the vectors; 0 where it was found otherwise. */
  readonly similarity: number;
}

export interface FactChange {
  readonly known: KnownFact;
  readonly fact: Fact;
  /** Writes that it has taken in now, besides those it had. */
  readonly taken: readonly string[];
}

/** What one telling comes to. Either an insert, after which it is planned again, or changes of what is there, the kept fact first. */
export interface FactPlan {
  readonly insert: Fact | null;
  readonly changes: readonly FactChange[];
  /** The fact that stands for what was told. */
  readonly kept: Fact | null;
  readonly isTaken: boolean;
  /** Ids whose place it took. */
  readonly replaced: readonly string[];
  /** Current facts that the rules could not tell from it or against it, most similar first. */
  readonly undecided: readonly KnownFact[];
}

export interface Told {
  readonly fact: Fact;
  readonly statement: Statement;
  readonly writeId: string;
}

/**
 * The truth of one owner after something was told, as a function of what is stored. Planned again with what it led to, it changes
 * nothing: whoever was cut off in the middle does it again, and two that write at once end alike.
 */
export function planFact(told: Told, known: readonly KnownFact[]): FactPlan {
  const sames = known.filter((one) => isSame(told, one));
  const holder = known.find(({ taken }) => taken.has(told.writeId));
  const current = (holder && isCurrent(holder.fact) ? [holder, ...sames.filter((one) => one !== holder)] : sames)
    .filter(({ fact }) => isCurrent(fact))
    .toSorted((a, b) => a.fact.createdAt - b.fact.createdAt || (a.fact.id < b.fact.id ? -1 : 1));
  const [first, ...copies] = current;
  if (first !== undefined) return planKept(told, first, copies, known, holder !== undefined);
  if (holder !== undefined) return { ...NOTHING, kept: holder.fact, isTaken: true };
  const past = sames
    .filter(({ fact }) => (fact.validTo ?? 0) >= factTime(told.fact))
    .toSorted((a, b) => factTime(b.fact) - factTime(a.fact))[0];
  if (past !== undefined) return planPast(told, past);
  return planInsert(told, known);
}

const NOTHING: FactPlan = { insert: null, changes: [], kept: null, isTaken: false, replaced: [], undecided: [] };

function isSame({ fact, statement }: Told, known: KnownFact): boolean {
  if (relationOf(known.statement, statement) === 'same') return true;
  return known.similarity >= NEAR_WORDINGS_MIN && !contradicts(fact, statement, known) && areNearWordings(known.statement, statement);
}

function contradicts(fact: Fact, statement: Statement, known: KnownFact): boolean {
  return haveOneSubject(fact, known.fact) || relationOf(known.statement, statement) === 'contradicts';
}

function rivalsOf(told: Told, known: readonly KnownFact[], except: readonly KnownFact[]): KnownFact[] {
  return known.filter(
    (one) => isCurrent(one.fact) && !except.includes(one) && !isSame(told, one) && contradicts(told.fact, told.statement, one),
  );
}

function planKept(told: Told, first: KnownFact, copies: readonly KnownFact[], known: readonly KnownFact[], isTaken: boolean): FactPlan {
  const at = Math.max(lastTold(first.fact), factTime(told.fact));
  const rivals = rivalsOf(told, known, [first, ...copies]);
  const newer = rivals.filter((one) => isNewer(one.fact, at)).toSorted((a, b) => lastTold(a.fact) - lastTold(b.fact))[0];
  const older = rivals.filter((one) => !isNewer(one.fact, at));
  const again = isTaken ? first.fact : toldAgain(first.fact, told.fact);
  const whole = copies.reduce((kept, { fact }) => (first.taken.has(mergeId(fact)) ? kept : merged(kept, fact)), again);
  const kept = newer === undefined ? whole : superseded(whole, { id: newer.fact.id, at: factTime(newer.fact) });
  const taken = [...(isTaken ? [] : [told.writeId]), ...copies.flatMap((copy) => [mergeId(copy.fact), ...copy.taken])];
  // Written also where only others change: of two that supersede each other at once, one then comes too late and looks again.
  const isChanged = !isTaken || copies.length > 0 || older.length > 0 || newer !== undefined;
  return {
    insert: null,
    changes: [
      ...(isChanged ? [{ known: first, fact: kept, taken }] : []),
      ...copies.map((copy) => replacedBy(copy, kept, factTime(copy.fact))),
      ...older.map((rival) => replacedBy(rival, kept, at)),
    ],
    kept,
    isTaken,
    replaced: older.map(({ fact }) => fact.id),
    undecided: undecidedFor(told, known),
  };
}

function planPast(told: Told, past: KnownFact): FactPlan {
  const fact = toldAgain(past.fact, told.fact);
  return { ...NOTHING, changes: [{ known: past, fact, taken: [told.writeId] }], kept: fact };
}

/**
 * What is older than what is known goes into the history at once. What is told for the very time of something else counts from a
 * millisecond later, so that from then on the order of the two is a matter of what is stored.
 */
function planInsert(told: Told, known: readonly KnownFact[]): FactPlan {
  const { id } = told.fact;
  const lives = known.filter(({ fact }) => fact.id === id || fact.id.startsWith(`${id}.`)).length;
  const fact = { ...told.fact, id: lifeId(id, lives + 1) };
  const at = factTime(fact);
  const rivals = rivalsOf(told, known, []).map((rival) => rival.fact);
  const newer = rivals.filter((rival) => isNewer(rival, at)).toSorted((a, b) => lastTold(a) - lastTold(b))[0];
  if (newer !== undefined) return insertOf(superseded(fact, { id: newer.id, at: factTime(newer) }));
  return insertOf(rivals.some((rival) => lastTold(rival) === at) ? { ...fact, validFrom: at + 1 } : fact);
}

function insertOf(fact: Fact): FactPlan {
  return { ...NOTHING, insert: fact, kept: fact };
}

/** Of two that were told for one time, the later write wins. */
function isNewer(fact: Fact, at: number): boolean {
  return lastTold(fact) > at;
}

function replacedBy(known: KnownFact, by: Fact, at: number): FactChange {
  return { known, fact: superseded(known.fact, { id: by.id, at }), taken: [] };
}

export function mergeId(fact: Fact): string {
  return `merged ${fact.id}`;
}

function undecidedFor(told: Told, known: readonly KnownFact[]): readonly KnownFact[] {
  return known
    .filter((one) => isCurrent(one.fact) && !isSame(told, one) && !haveOneSubject(told.fact, one.fact))
    .filter((one) => relationOf(one.statement, told.statement) === 'undecided')
    .toSorted((a, b) => b.similarity - a.similarity);
}
