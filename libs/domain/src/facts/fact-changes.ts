import type { Fact } from '@etude/contracts/memory';
import { factTime, reinforce } from '../retrieval/reinforce.js';

export function isCurrent(fact: Fact): boolean {
  return fact.validTo === undefined && fact.supersededBy === undefined;
}

/** The known fact after it was told again. It keeps its own spelling. */
export function toldAgain(known: Fact, again: Fact): Fact {
  const subject = known.subject ?? again.subject;
  return { ...reinforce(known, again), ...(subject === undefined ? {} : { subject }) };
}

/** The fact, ended because `by` replaced it. A fact that becomes true only later ends the moment it begins. */
export function superseded(known: Fact, by: { readonly id: string; readonly at: number }): Fact {
  return { ...known, validTo: Math.max(by.at, factTime(known)), supersededBy: by.id };
}
