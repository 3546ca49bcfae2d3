import type { Fact, FactDecision } from '@etude/contracts/memory';
import { factTime, reinforce } from '../retrieval/reinforce.js';
import { superseded } from './fact-plan.js';

/** Two facts of one owner. `newer` became true later. */
export interface FactsOfPair {
  readonly older: Fact;
  readonly newer: Fact;
}

/** More are not kept as wordings. Their facts stay in the history. */
const WORDINGS_MAX = 20;
/** The topic seldom needs more. */
const OUTDATED_MAX = 3;

/** The two facts, ordered by when they became true. For equal times, `fact` is the newer one. */
export function pairOf(fact: Fact, other: Fact): FactsOfPair {
  return factTime(other) > factTime(fact) ? { older: fact, newer: other } : { older: other, newer: fact };
}

/** The last decision about the two facts, if there is one. */
export function decisionAbout({ older, newer }: FactsOfPair): FactDecision | undefined {
  return newer.decisions?.findLast(({ other }) => other === older.id);
}

/**
 * Both facts after a decision, which the newer one keeps. After `same`, the newer fact has the older one's text as a wording, and its
 * support. After `replaces` it is also found by the older one's texts. After both the older fact is no longer current.
 */
export function decided({ older, newer }: FactsOfPair, decision: FactDecision): FactsOfPair {
  const known: Fact = { ...newer, decisions: [...(newer.decisions ?? []), decision] };
  if (decision.verdict === 'differs') return { older, newer: known };
  const own = { id: older.id, text: older.text };
  const outdated = [...(newer.outdated ?? []), ...(older.outdated ?? [])];
  if (decision.verdict === 'replaces')
    return {
      older: ended(older, newer),
      newer: { ...known, outdated: [own, ...outdated, ...(older.wordings ?? [])].slice(0, OUTDATED_MAX) },
    };
  const wordings = [own, ...(newer.wordings ?? []), ...(older.wordings ?? [])].slice(0, WORDINGS_MAX);
  const kept = outdated.length === 0 ? {} : { outdated: outdated.slice(0, OUTDATED_MAX) };
  const after = reinforce(newer, older);
  const gained = { support: after.support - newer.support, episodes: after.episodes.filter((id) => !newer.episodes.includes(id)) };
  const decisions = [...(newer.decisions ?? []), { ...decision, gained }];
  return { older: ended(older, newer), newer: { ...after, ...kept, wordings, decisions } };
}

export function ended(older: Fact, newer: Fact): Fact {
  return superseded(older, { id: newer.id, at: factTime(newer) });
}

/**
 * Both facts as if the decision about them had not been made. If the newer one had ended the older one, they count as different from then
 * on. Otherwise they have to be compared again. null if nothing was decided about them.
 */
export function undone({ older, newer }: FactsOfPair, { by, at }: Pick<FactDecision, 'by' | 'at'>): FactsOfPair | null {
  const made = decisionAbout({ older, newer });
  if (made === undefined) return null;
  const decisions = (newer.decisions ?? []).filter((decision) => decision !== made);
  if (made.verdict === 'differs') return { older, newer: { ...newer, decisions, unsettled: [older.id, ...(newer.unsettled ?? [])] } };
  const differs: FactDecision = { other: older.id, verdict: 'differs', reason: `undone: ${made.verdict}; ${made.reason}`, by, at };
  const gone = new Set([older, ...(older.wordings ?? []), ...(older.outdated ?? [])].map(({ id }) => id));
  const [wordings, outdated] = [newer.wordings ?? [], newer.outdated ?? []].map((texts) => texts.filter(({ id }) => !gone.has(id)));
  const { support: more, episodes: from } = made.gained ?? { support: 0, episodes: [] };
  const episodes = newer.episodes.filter((id) => !from.includes(id));
  const { validTo: _to, supersededBy, ...rest } = older;
  return {
    older: supersededBy === newer.id ? rest : older,
    newer: { ...newer, wordings, outdated, episodes, support: newer.support - more, decisions: [...decisions, differs] },
  };
}

/** The fact with these ids left of those that it has to be compared with. */
export function leftToCompare(fact: Fact, left: readonly string[]): Fact {
  const { unsettled: _, ...rest } = fact;
  return left.length === 0 ? rest : { ...rest, unsettled: [...left] };
}
