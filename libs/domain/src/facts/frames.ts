import { attributeKind } from './attribute-nouns.js';
import type { PlainStatement } from './plain-words.js';
import { stemmed } from './stem-words.js';

/** What a statement says of what. Two of one `key` with different values may contradict each other. */
export interface Frame {
  readonly key: string;
  readonly value: readonly string[];
  /**
   * What makes two values exclude each other. `any`: that they differ; `name`: that both are names; `class`: that they are of one
   * closed class, such as colours or numbers; `place`: as `any`, but a town and its country do not.
   */
  readonly by: 'any' | 'name' | 'class' | 'place';
  /** The words say that it is over: "left Acme". */
  readonly isEnded: boolean;
  /** The time that the words give for a change: "in 2015"; empty where they give none. */
  readonly during: string;
}

interface Rule {
  readonly pattern: RegExp;
  /** What is said of the subject; null: the attribute in the match. */
  readonly of: string | null;
  readonly by: Frame['by'];
  readonly isEnded: boolean;
}

const SET_TO =
  '(?:was|has been|has|have|is)? ?(?:changed|set|updated|renamed|raised|lowered|increased|decreased|reduced|switched|dropped|moved|bumped) (?:from .+? )?to';
const IS = `(?:is|is named|is called|will be|equals|has become|became|defaults to|${SET_TO})`;
const OWN = "(?:its|his|her|their|the|our|an?|user 's)";
const A = '(?<a>(?:\\S+ ){0,3}?\\S+)';

const RULES: readonly Rule[] = [
  // Where somebody or something is.
  rule('^(?<s>.+?) (?:live|is living|is based|is located|is situated) (?:in|at) (?<v>.+)$', 'live', 'place'),
  rule(
    '^(?<s>.+?) (?:has |have |is |was )?(?:moved|relocated|moving|relocating)(?: from .+?)? to (?<v>.+?)(?: from .+)?$',
    'live',
    'place',
  ),
  ended('^(?<s>.+?) (?:has )?left (?<v>.+)$', 'live', 'place'),
  rule('^(?<s>.+?) (?:is from|comes from|come from|was born in|was born on|grew up in) (?<v>.+)$', 'born', 'place'),
  // For whom somebody works.
  rule('^(?<s>.+?) (?:work|is working|is employed) (?:at|for|by) (?<v>.+)$', 'employer', 'any'),
  rule('^(?<s>.+?) (?:has |have )?joined (?<v>(?!a |an |the ).+)$', 'employer', 'name'),
  ended('^(?<s>.+?) (?:has )?left (?<v>.+)$', 'employer', 'name'),
  rule('^(?<s>.+?) (?:work|is working|is employed) as (?<v>.+)$', 'job', 'any'),
  rule('^(?<s>.+?) (?:study|studies|is studying|is enrolled) at (?<v>.+)$', 'school', 'any'),
  rule('^(?<s>.+?) (?:reports|report) to (?<v>.+)$', 'reports', 'any'),
  rule('^(?<s>.+?) (?:is married to|married) (?<v>.+)$', 'married', 'name'),
  // Attributes, in the ways to say them.
  rule(`^(?:the )?${A} of (?<s>.+?) ${IS} (?<v>.+)$`, null, 'any'),
  rule(`^(?<s>.+?) 's ${A} ${IS} (?<v>.+)$`, null, 'any'),
  rule(`^(?<v>.+?) is (?<s>.+?) 's (?<a>(?:\\S+ ){0,2}\\S+)$`, null, 'any'),
  rule(`^(?<v>.+?) is the (?<a>(?:\\S+ ){0,2}\\S+) of (?<s>.+)$`, null, 'any'),
  rule('^(?<s>.+?) have an? (?<a>\\S+(?: \\S+)?) of (?<v>.+)$', null, 'any'),
  rule(`^(?<s>.+?) (?:uses|use) (?<v>.+?) as ${OWN} (?<a>.+)$`, null, 'any'),
  rule(`^(?:the )?${A} ${IS} (?<v>.+)$`, null, 'any'),
  // One of each for things that are made and run.
  rule('^(?<s>.+?) is (?:hosted|deployed) (?:on|in|at|to|by) (?<v>.+)$', 'deployed', 'any'),
  rule('^(?<s>.+?) is (?:stored|kept|saved) (?:in|on|at) (?<v>.+)$', 'stored', 'any'),
  rule('^(?<s>.+?) is (?:written|implemented) in (?<v>.+)$', 'written', 'name'),
  rule('^(?<s>.+?) is (?:owned|maintained|led|managed|sponsored|headed) by (?<v>.+)$', 'led', 'any'),
  rule('^(?<s>.+?) is (?:licensed|released) under (?<v>.+)$', 'licence', 'any'),
  rule('^(?<s>.+?) defaults to (?<v>.+)$', 'default', 'any'),
  rule('^(?<s>.+?) (?:is |are )?(?:listens|listen|listening|runs|run|running)? ?on port (?<v>\\S+)$', 'port', 'any'),
  // When something is; what it costs, takes, weighs.
  rule(
    '^(?<s>.+?) (?:is|takes place|happens|starts|start|begins|begin|is due|is scheduled|is held|is planned|(?:was|has been|has|is) (?:moved|rescheduled|postponed)) (?:on|at|for|in|to|by|until) (?<v>.+)$',
    'when',
    'class',
  ),
  rule('^(?<s>.+?) (?<a>opens|closes|ends|expires|leaves|arrives|departs|finishes|wakes up|gets up) (?:on|at|in) (?<v>.+)$', null, 'class'),
  rule(
    '^(?<s>.+?) (?<a>have|is|costs|cost|takes|take|weighs|lasts|measures|contains|holds|earns|requires|needs|allows|accepts|sleeps|returns|prefers|prefer|uses|use|targets|wants|is called|is named) (?:(?:up to|about|around|only|at least|at most|exactly) )*(?<v>.+)$',
    null,
    'class',
  ),
];

/** In a subject these say that it is none: the statement is about what somebody thinks, or holds only sometimes. */
const CLAUSE =
  /^(?:to|wants|would|might|may|could|should|if|when|that|who|which|because|thinks|believes|,|and|or|but|while|than|was|were)$/;
/** In a value these say that it holds only sometimes, or of several. */
const BENDS = /^(?:if|when|unless|sometimes|usually|or|because|while|than|that|which|who|often|until|was|were)$/;
const TIME_BEFORE = /^(?:as of|since|from|in|on|starting|after) (?:\S+ ){1,2}, /;
const TIME_BEHIND =
  / (?:(?:last|this|next) (?:week|month|year|spring|summer|autumn|winter|\S+day)|yesterday|today|tomorrow|in (?:19|20)\d\d|since .+|in (?:january|february|march|april|may|june|july|august|september|october|november|december)(?: \d{4})?|as of .+|\S+ (?:days?|weeks?|months?|years?) ago)$/;
const CHANGE = / (?:moved|relocated|joined|changed|switched|became|become|left|live|work|started|bumped|raised|lowered) /;

/** All frames that the words fit; none for what is more than a plain statement. */
export function framesOf({ words, names, isLong }: PlainStatement): readonly Frame[] {
  if (isLong) return [];
  const whole = words.join(' ').replace(TIME_BEFORE, '');
  const during = CHANGE.test(whole) ? (TIME_BEHIND.exec(whole)?.[0] ?? '') : '';
  const line = whole.slice(0, whole.length - during.length);
  return RULES.flatMap((one) => {
    const found = one.pattern.exec(line)?.groups;
    return found === undefined ? [] : frameOf(one, found, names).map((frame) => ({ ...frame, during }));
  });
}

const SUBJECT_WORDS_MAX = 6;
const VALUE_WORDS_MAX = 8;

function frameOf(
  one: Rule,
  { s = '', a = '', v = '' }: Record<string, string | undefined>,
  names: ReadonlySet<string>,
): Array<Omit<Frame, 'during'>> {
  const subject = withoutArticles(s);
  const attribute = withoutArticles(a);
  const value = withoutArticles(v);
  if (subject.length > SUBJECT_WORDS_MAX || value.length === 0 || value.length > VALUE_WORDS_MAX) return [];
  if ([...subject, ...attribute].some((word) => CLAUSE.test(word)) || value.some((word) => BENDS.test(word))) return [];
  if (one.by === 'name' && !value.some((word) => names.has(word))) return [];
  const by = one.of === null && one.by === 'any' ? byAttribute(attribute) : one.by;
  const about = `${one.of ?? attribute.map(stemmed).join(' ')}|${subject.map(stemmed).join(' ')}`;
  return [{ key: by === 'class' ? `${about}|class` : about, value, by, isEnded: one.isEnded }];
}

function byAttribute(attribute: readonly string[]): Frame['by'] {
  const kind = attributeKind(attribute);
  if (kind === 'named') return 'name';
  return kind === 'single' ? 'any' : 'class';
}

function withoutArticles(line: string): string[] {
  return line.split(' ').filter((word) => !/^(?:|the|an?|,)$/.test(word));
}

function rule(pattern: string, of: string | null, by: Frame['by']): Rule {
  return { pattern: new RegExp(pattern), of, by, isEnded: false };
}

function ended(pattern: string, of: string | null, by: Frame['by']): Rule {
  return { ...rule(pattern, of, by), isEnded: true };
}
