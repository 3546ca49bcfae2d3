import { areExclusive, isLargePlace } from './exclusive-values.js';
import { type Frame, framesOf } from './frames.js';
import { type PlainStatement, plainStatement } from './plain-words.js';
import { isNumber, stemmed, tellingWords } from './stem-words.js';

/**
 * How two statements of one owner stand to each other. `same`: they say the same; `contradicts`: both cannot be true of one time;
 * `apart`: they speak of different things; `undecided`: the rules cannot tell.
 */
export type Relation = 'same' | 'contradicts' | 'apart' | 'undecided';

/** A statement taken apart, so that many can be compared with it. */
export interface Statement {
  readonly plain: PlainStatement;
  readonly frames: readonly Frame[];
  readonly telling: readonly string[];
}

export function statementOf(text: string): Statement {
  const plain = plainStatement(text);
  return { plain, frames: framesOf(plain), telling: tellingWords(plain.words) };
}

/**
 * Decided by rules alone, the same in both directions: rather undecided than wrong. A wrong `contradicts` hides a true fact, a
 * missed one leaves two that a reader can still tell apart by their times.
 */
export function relationOf(a: Statement, b: Statement): Relation {
  const haveSameSigns = a.plain.signs === b.plain.signs;
  if (isSameLine(a, b) && haveSameSigns) return a.plain.negated === b.plain.negated ? 'same' : 'contradicts';
  if (a.plain.isLong || b.plain.isLong) return 'undecided';
  const framed = a.frames.flatMap((one) => b.frames.filter(({ key }) => key === one.key).map((other) => compareFrames(a, one, b, other)));
  if (framed.includes('same')) return haveSameSigns && haveSameDetails(a, b) ? 'same' : 'undecided';
  if (framed.includes('contradicts')) return 'contradicts';
  if (isSwap(a, b) || isChangeFrom(a, b) || isChangeFrom(b, a)) return 'contradicts';
  if (framed.includes('apart') || haveOtherSubjects(a, b)) return 'apart';
  return 'undecided';
}

/** Names and numbers: "moved to Prague in 2015" says more than "lives in Prague". */
function haveSameDetails(a: Statement, b: Statement): boolean {
  const numbers = [...a.telling, ...b.telling].filter(isNumber);
  const details = [...numbers, ...a.plain.names, ...b.plain.names];
  return details.every((word) => a.plain.words.includes(word) === b.plain.words.includes(word));
}

/** The same telling words in the same order, or in another where nothing depends on the order. */
function isSameLine(a: Statement, b: Statement): boolean {
  if (a.telling.length === 0 || b.telling.length !== a.telling.length) return false;
  if (a.telling.every((word, at) => word === b.telling[at])) return true;
  const ordered = a.telling.toSorted().join(' ') === b.telling.toSorted().join(' ');
  const names = new Set([...a.plain.names, ...b.plain.names].map(stemmed));
  const named = a.telling.filter((word) => isNumber(word) || word === a.telling[0] || word === b.telling[0] || names.has(word)).length;
  return ordered && named <= 1 && !a.plain.words.some((word) => /^(?:to|from|before|after|over|under|than|by)$/.test(word));
}

function compareFrames(a: Statement, one: Frame, b: Statement, other: Frame): Relation {
  // "moved to Rome in 2015" and "moved to Oslo in 2020" both happened.
  if (one.during !== other.during && /\d{4}/.test(one.during) && /\d{4}/.test(other.during)) return 'undecided';
  const values = compareValues(a, one, b, other);
  const [isNotOne, isNotOther] = [a.plain.negated !== one.isEnded, b.plain.negated !== other.isEnded];
  if (isNotOne && isNotOther) return values === 'same' ? 'same' : 'apart';
  if (isNotOne !== isNotOther) return values === 'same' ? 'contradicts' : 'apart';
  return values;
}

function compareValues(a: Statement, one: Frame, b: Statement, other: Frame): Relation {
  const [x, y] = [one.value.map(stemmed), other.value.map(stemmed)];
  if (x.join(' ') === y.join(' ')) return 'same';
  if (isMoreOf(x, y) || isMoreOf(y, x)) return 'undecided';
  if (one.by === 'class') return differInClass(one, other) ? 'contradicts' : 'undecided';
  if (one.by === 'name' && !(hasName(a, one) && hasName(b, other))) return 'undecided';
  if (one.by === 'place') return arePlacesApart(one.value, other.value) ? 'contradicts' : 'undecided';
  if (one.value.some(isNumber) !== other.value.some(isNumber)) return 'undecided';
  return qualifierOf(one.value) === qualifierOf(other.value) && !isList(one.value) && !isList(other.value) ? 'contradicts' : 'undecided';
}

/** "Berlin, Germany" says more of "Berlin". */
function isMoreOf(x: readonly string[], y: readonly string[]): boolean {
  return y.every((word) => x.includes(word));
}

/** Exactly one word differs, both of one class, in front of what narrows the value. */
function differInClass({ key, value: x }: Frame, { value: y }: Frame): boolean {
  if (x.length !== y.length) return false;
  const places = x.flatMap((word, at) => (stemmed(word) === stemmed(y[at]!) ? [] : [at]));
  const [at] = places;
  if (at === undefined || places.length > 1 || !areExclusive(x[at]!, y[at]!)) return false;
  if (key.startsWith('when|')) return [...x, ...y].every(isTime);
  return !x.slice(0, at).some((word) => PREPOSITION.test(word));
}

function isTime(word: string): boolean {
  return (
    isNumber(word) || TIME_WORD.test(word) || areExclusive(word, 'sunday') || areExclusive(word, 'april') || areExclusive(word, 'noon')
  );
}

const TIME_WORD = /^(?:at|on|in|from|to|am|pm|o'clock|of|sunday|april|noon|st|nd|rd|th)$/;
const PREPOSITION = /^(?:for|in|on|at|during|per|with|when|from|after|before|under|since|by|of|to|and)$/;

function qualifierOf(value: readonly string[]): string {
  const at = value.findIndex((word) => /^(?:for|in|on|during|per|with|at|under|by)$/.test(word));
  return at === -1 ? '' : value.slice(at).map(stemmed).join(' ');
}

function isList(value: readonly string[]): boolean {
  return value.includes('and') || value.includes('or');
}

function arePlacesApart(x: readonly string[], y: readonly string[]): boolean {
  const [a, b] = [x, y].map((value) => value.slice(0, indexOrEnd(value, /^(?:with|near|together|alone|for|at)$/)));
  if (isLargePlace(a!) !== isLargePlace(b!) || a!.some(isNumber) !== b!.some(isNumber)) return false;
  return ![...a!, ...b!].some((word) =>
    /^(?:in|on|and|of|house|flat|apartment|city|town|village|suburb|outskirts|centre|downtown|district)$/.test(word),
  );
}

function indexOrEnd(value: readonly string[], pattern: RegExp): number {
  const at = value.findIndex((word) => pattern.test(word));
  return at <= 0 ? value.length : at;
}

function hasName({ plain }: Statement, { value }: Frame): boolean {
  return value.some((word) => plain.names.has(word));
}

/** "prefers tabs over spaces" and "prefers spaces over tabs". */
function isSwap(a: Statement, b: Statement): boolean {
  const [x, y] = [a, b].map(({ plain }) => / (\S+) (over|to|than|before|rather than) (\S+)$/.exec(plain.words.join(' ')));
  if (!x || !y || a.plain.negated || b.plain.negated || !/ (?:prefers?|like|faster|slower|better|worse|larger|smaller|more) /.test(x.input))
    return false;
  return x[1] === y[3] && x[3] === y[1] && x[2] === y[2] && x.input.slice(0, x.index) === y.input.slice(0, y.index);
}

const CHANGED_FROM =
  /^(?<s>.+?) (?:has |have )?(?:(?:switched|migrated|changed|upgraded|moved|went) (?:.+ )?from (?<a>.+) to (?<b>.+)|replaced (?<c>.+) (?:with|by) (?<d>.+))$/;
const USES = /^(?<s>.+?) (?:uses|use|runs on|runs|run|is on|drives|drive|relies on|prefers|is using|subscribes to) (?<v>.+)$/;

/** The first says that something was given up which the second says is in use. */
function isChangeFrom(change: Statement, use: Statement): boolean {
  if (change.plain.negated || use.plain.negated) return false;
  const changed = CHANGED_FROM.exec(change.plain.words.join(' '))?.groups;
  const used = USES.exec(use.plain.words.join(' '))?.groups;
  if (changed === undefined || used === undefined) return false;
  const old = tellingWords((changed['a'] ?? changed['c'] ?? '').split(' '));
  const kept = tellingWords((used['v'] ?? '').split(' '));
  const subjects = [changed['s'], used['s']].map((subject) => tellingWords((subject ?? '').split(' ')).join(' '));
  return subjects[0] === subjects[1] && old.length > 0 && kept.slice(0, old.length).join(' ') === old.join(' ');
}

/**
 * Whether two texts that an embedder finds nearly the same say the same: every word that only one of them has is a form, or a
 * misspelling, of one that only the other has, and neither is a name or a number.
 */
export function areNearWordings(a: Statement, b: Statement): boolean {
  if (a.plain.negated !== b.plain.negated || a.plain.signs !== b.plain.signs || a.plain.isLong || b.plain.isLong) return false;
  if (a.telling.length === 0) return a.plain.words.join(' ') === b.plain.words.join(' ');
  const [onlyA, onlyB] = [without(a.telling, b.telling), without(b.telling, a.telling)];
  if (onlyA.length !== onlyB.length || isReordered(a, b)) return false;
  return onlyA.every((word) => onlyB.some((other) => areForms(word, other))) && ![...onlyA, ...onlyB].some((word) => isDetail(a, b, word));
}

const FORM_CHARS_MIN = 5;
const FORM_SHARE_MIN = 0.6;

/** Of scripts whose words have forms; in others one character is a word. */
function areForms(a: string, b: string): boolean {
  if (![a, b].every((word) => word.length >= FORM_CHARS_MIN && SPELLED.test(word))) return false;
  const longer = Math.max(a.length, b.length);
  let alike = 0;
  while (alike < longer && a[alike] === b[alike]) alike += 1;
  let behind = 0;
  while (behind < Math.min(a.length, b.length) - alike && a.at(-1 - behind) === b.at(-1 - behind)) behind += 1;
  const isSlip = alike + behind >= longer - 1 || (a.length === b.length && alike + behind === longer - 2 && isTurned(a, b, alike));
  return (alike > 0 && isSlip) || (alike >= FORM_CHARS_MIN && alike >= longer * FORM_SHARE_MIN);
}

const SPELLED = /^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}'-]+$/u;

function isTurned(a: string, b: string, at: number): boolean {
  return a[at] === b[at + 1] && a[at + 1] === b[at];
}

function isDetail(a: Statement, b: Statement, word: string): boolean {
  return isNumber(word) || [...a.plain.names, ...b.plain.names].some((name) => stemmed(name) === word);
}

/** What they share stands in another order, and so may mean another thing. */
function isReordered(a: Statement, b: Statement): boolean {
  const shared = (x: Statement, y: Statement) => x.telling.filter((word) => y.telling.includes(word)).join(' ');
  return shared(a, b) !== shared(b, a);
}

function without(words: readonly string[], others: readonly string[]): string[] {
  return words.filter((word) => !others.includes(word));
}

/** Both begin with a name, and with another one. */
function haveOtherSubjects(a: Statement, b: Statement): boolean {
  const [x, y] = [a.plain.words[0], b.plain.words[0]];
  return x !== y && !a.plain.words.includes(y ?? '') && !b.plain.words.includes(x ?? '');
}
