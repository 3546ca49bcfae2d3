import type { Fact } from '@etude/contracts/memory';
import { factTime, reinforce } from '../retrieval/reinforce.js';
import { normalFactText } from './fact-keys.js';

const WORDINGS_MAX = 20;

export function isCurrent(fact: Fact): boolean {
  return fact.validTo === undefined && fact.supersededBy === undefined;
}

/** The known fact after it was told again, perhaps in other words. It keeps its own wording. */
export function toldAgain(known: Fact, again: Fact): Fact {
  const wordings = withWordings(known, [again.text]);
  const subject = known.subject ?? again.subject;
  return {
    ...reinforce(known, again),
    ...(subject === undefined ? {} : { subject }),
    ...(wordings.length === 0 ? {} : { wordings }),
  };
}

/** Merges two records of one fact. */
export function merged(kept: Fact, other: Fact): Fact {
  const both = reinforce(kept, other);
  const withoutEpisode = other.episodes.length === 0 ? 0 : Math.max(0, other.support - other.episodes.length);
  const wordings = withWordings(kept, [other.text, ...(other.wordings ?? [])]);
  return {
    ...both,
    support: both.support + withoutEpisode,
    accessCount: kept.accessCount + other.accessCount,
    ...(wordings.length === 0 ? {} : { wordings }),
  };
}

/** The fact, ended because `by` replaced it. A fact that becomes true only later ends the moment it begins. */
export function superseded(known: Fact, by: { readonly id: string; readonly at: number }): Fact {
  return { ...known, validTo: Math.max(by.at, factTime(known)), supersededBy: by.id };
}

function withWordings({ text, wordings = [] }: Fact, told: readonly string[]): string[] {
  const known = new Set([text, ...wordings].map(normalFactText));
  const fresh = told.filter((wording) => !known.has(normalFactText(wording)) && known.add(normalFactText(wording)));
  return [...wordings, ...fresh].slice(0, WORDINGS_MAX);
}
