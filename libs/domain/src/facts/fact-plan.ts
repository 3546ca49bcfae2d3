import type { Fact, FactDecision } from '@etude/contracts/memory';
import { FINDING, isTold } from '../retrieval/entries.js';
import { contentDigest } from '../skills/content-digest.js';
import { untrustedAmong } from '../trust/sources.js';

/** A stored fact, current or not, that a search for a told fact of the same owner has found. */
export interface KnownFact {
  readonly fact: Fact;
  /** Ids of the writes that told the fact, oldest first. */
  readonly taken: readonly string[];
  /** Calibrated similarity of the vectors. 0 if the fact was found by a key. */
  readonly similarity: number;
}

export interface FactChange {
  readonly known: KnownFact;
  readonly fact: Fact;
  /** Ids of the writes that this change adds to the fact. */
  readonly taken: readonly string[];
}

/** The plan for one told fact: an insert, or changes of stored facts. `kept` is changed first. After an insert, the plan is made again. */
export interface FactPlan {
  readonly insert: Fact | null;
  readonly changes: readonly FactChange[];
  /** The stored fact that represents the told fact. */
  readonly kept: Fact | null;
  readonly isTaken: boolean;
  readonly replaced: readonly string[];
}

export interface Told {
  readonly fact: Fact;
  readonly writeId: string;
}

/**
 * Plans the changes for one told fact from the stored facts of its owner. If the plan is carried out and made again, it has no changes. So an
 * interrupted writer can repeat it, and two concurrent writers end with the same facts.
 */
export function planFact(told: Told, known: readonly KnownFact[]): FactPlan {
  const sames = known.filter((one) => saysSame(one.fact, told.fact));
  const holder = known.find(({ taken }) => taken.includes(told.writeId));
  const isHeld = holder !== undefined && isCurrent(holder.fact);
  const current = isHeld ? holder : sames.find(({ fact }) => isCurrent(fact));
  if (current !== undefined) return planKept(told, current, known, holder !== undefined);
  if (holder !== undefined) return { ...NOTHING, kept: holder.fact, isTaken: true };
  const past = sames
    .filter(({ fact }) => (fact.validTo ?? 0) >= factTime(told.fact))
    .toSorted((a, b) => factTime(b.fact) - factTime(a.fact))[0];
  if (past === undefined) return planInsert(told, known);
  const fact = toldAgain(past.fact, told.fact);
  return { ...NOTHING, changes: [{ known: past, fact, taken: [told.writeId] }], kept: fact };
}

const NOTHING: FactPlan = { insert: null, changes: [], kept: null, isTaken: false, replaced: [] };

/** Other current facts on the subject: all those last told at `at` or before, and the first one told later. For equal times, the later write wins. */
function rivalsOf({ fact }: Told, known: readonly KnownFact[], kept: KnownFact | null, at: number) {
  const rivals = known
    .filter((one) => isCurrent(one.fact) && one !== kept && !saysSame(one.fact, fact) && haveOneSubject(fact, one.fact))
    .toSorted((a, b) => lastTold(a.fact) - lastTold(b.fact));
  return { older: rivals.filter((one) => lastTold(one.fact) <= at), newer: rivals.find((one) => lastTold(one.fact) > at)?.fact };
}

function planKept(told: Told, first: KnownFact, known: readonly KnownFact[], isTaken: boolean): FactPlan {
  const at = Math.max(lastTold(first.fact), factTime(told.fact));
  const { older, newer } = rivalsOf(told, known, first, at);
  const again = isTaken ? first.fact : toldAgain(first.fact, told.fact);
  const kept = newer === undefined ? again : ended(again, newer);
  // The fact is written even if only other facts change. So if two facts replace each other at once, one write fails and is planned again.
  const isChanged = !isTaken || older.length > 0 || newer !== undefined;
  return {
    insert: null,
    changes: [
      ...(isChanged ? [{ known: first, fact: kept, taken: isTaken ? [] : [told.writeId] }] : []),
      ...older.map((rival) => ({ known: rival, fact: superseded(rival.fact, { id: kept.id, at }), taken: [] })),
    ],
    kept,
    isTaken,
    replaced: older.map(({ fact }) => fact.id),
  };
}

/**
 * Plans a new fact. If a newer fact on the same subject is known, the new fact becomes history at once. If another fact on the subject was last told
 * at the same time, the new fact becomes valid a millisecond later, so that the stored times order the two.
 */
function planInsert(told: Told, known: readonly KnownFact[]): FactPlan {
  const at = factTime(told.fact);
  const { id } = told.fact;
  // A replaced fact that is told again becomes a new record, so that the history keeps both times.
  const fact = { ...told.fact, id: known.some((one) => one.fact.id === id) ? `${id}.${at.toString(36)}` : id };
  const { older, newer } = rivalsOf(told, known, null, at);
  const current = older.some((rival) => lastTold(rival.fact) === at) ? { ...fact, validFrom: at + 1 } : fact;
  const insert = newer === undefined ? { ...current, ...unsettledAmong(told, known) } : ended(fact, newer);
  return { ...NOTHING, insert, kept: insert };
}

const NEAR_MAX = 6;

/** The near facts that a judge has to compare with the told fact, nearest first. Facts with the same subject need no judge. */
function unsettledAmong({ fact }: Told, known: readonly KnownFact[]): Pick<Fact, 'unsettled'> {
  if (fact.category === FINDING) return {};
  const near = known
    .filter((one) => one.similarity > 0 && one.fact.category !== FINDING && isCurrent(one.fact) && !haveOneSubject(fact, one.fact))
    .toSorted((a, b) => b.similarity - a.similarity)
    .slice(0, NEAR_MAX);
  return near.length === 0 ? {} : { unsettled: near.map((one) => one.fact.id) };
}

export function isCurrent(fact: Fact): boolean {
  return fact.validTo === undefined && fact.supersededBy === undefined;
}

function toldAgain(known: Fact, again: Fact): Fact {
  return { ...reinforce(known, again), subject: known.subject ?? again.subject };
}

/** The fact, ended because the fact `by` replaced it. A fact that becomes true only after `by.at` ends when it begins. */
function superseded(known: Fact, by: { readonly id: string; readonly at: number }): Fact {
  return { ...known, validTo: Math.max(by.at, factTime(known)), supersededBy: by.id };
}

/** Two facts of one owner. `newer` became true later. */
export interface FactsOfPair {
  readonly older: Fact;
  readonly newer: Fact;
}

/** Maximum number of wordings of a fact. Further texts stay only in the history. */
const WORDINGS_MAX = 20;
/** Maximum number of texts of replaced facts by which search finds a fact. More texts are seldom needed. */
const OUTDATED_MAX = 3;

/** The two facts, ordered by when they became true. For equal times, `fact` is the newer one. */
export function pairOf(fact: Fact, other: Fact): FactsOfPair {
  return factTime(other) > factTime(fact) ? { older: fact, newer: other } : { older: other, newer: fact };
}

export function decisionAbout({ older, newer }: FactsOfPair): FactDecision | undefined {
  return newer.decisions?.findLast(({ other }) => other === older.id);
}

/**
 * Both facts after a decision. The newer fact stores the decision. After `same`, it has the older text as a wording, and the older fact's support.
 * After `replaces`, search also finds it by the older texts. In both cases the older fact is no longer current.
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
 * Both facts as if the decision about them had not been made. If the decision ended the older fact, the two count as different from then on.
 * Otherwise they have to be compared again. null if nothing was decided about them.
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

type Keyed = Pick<Fact, 'scope' | 'text' | 'category' | 'subject' | 'wordings'>;

/** Id of a statement of one owner. Outer blanks and the Unicode form make no difference, but case does: `getUser` and `getuser` are two facts. */
export function factId(scope: Fact['scope'], text: string): string {
  return `f${contentDigest([scope.tenant, scope.agent, scope.user, plainText(text)]).slice(0, 32)}`;
}

const plainText = (text: string) => text.normalize('NFC').trim();

/** Whether a stored fact has the told text, or has it as a wording. Outer blanks and the Unicode form make no difference. */
function saysSame({ text, wordings = [] }: Fact, told: Fact): boolean {
  return [text, ...wordings.map((wording) => wording.text)].some((one) => plainText(one) === plainText(told.text));
}

/** Whether both facts have the same named subject. Then only the newer of the two is true. */
function haveOneSubject(a: Fact, b: Fact): boolean {
  return a.subject !== undefined && b.subject !== undefined && subjectKey(a) === subjectKey(b);
}

/** The keys by which a fact is looked up. Facts with the same text or subject share a key, whatever the embedder says. */
export function factKeys(fact: Keyed): string[] {
  const texts = [fact.text, ...(fact.wordings ?? []).map(({ text }) => text)];
  return [...texts.map((text) => `text:${factId(fact.scope, text)}`), ...(fact.subject === undefined ? [] : [subjectKey(fact)])];
}

export function subjectKey({ scope: { agent, user }, category, subject = '' }: Pick<Keyed, 'scope' | 'category' | 'subject'>): string {
  return `subject:${contentDigest([agent, user, [category, plainText(subject)]]).slice(0, 24)}`;
}

/** Time when the fact became true, in ms since 1970. */
export function factTime(fact: Fact): number {
  return fact.validFrom ?? fact.createdAt;
}

/** Time when the fact was last told or edited, in ms since 1970. Only a newer fact can replace the fact. */
function lastTold(fact: Fact): number {
  return Math.max(factTime(fact), fact.updatedAt ?? 0);
}

/** A known fact after it was told or seen again. A supporting episode that is given twice counts once. */
export function reinforce(known: Fact, again: Fact): Fact {
  const episodes = [...new Set([...known.episodes, ...again.episodes])];
  const more = again.episodes.length === 0 ? again.support : episodes.length - known.episodes.length;
  const at = Math.max(lastTold(known), lastTold(again));
  return {
    ...known,
    episodes,
    ...touchedBy(known, again, episodes),
    ...(again.digest !== undefined && lastTold(again) >= lastTold(known) ? { digest: again.digest } : {}),
    support: known.support + more,
    confidence: Math.max(known.confidence, again.confidence),
    ...(at > factTime(known) ? { updatedAt: at } : {}),
  };
}

/** The untrusted sources of the fact. A told fact keeps its text, so it stays marked as told even if episodes support it later. */
function touchedBy(known: Fact, again: Fact, episodes: Fact['episodes']): Pick<Fact, 'touched'> {
  const told = isTold(known) && !isTold({ ...known, episodes }) ? [`facts/${known.id}`] : [];
  const touched = untrustedAmong([...told, ...(known.touched ?? []), ...(again.touched ?? [])]);
  return touched.length === 0 ? {} : { touched };
}
