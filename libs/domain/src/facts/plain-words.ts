/** A statement as words: contractions opened, numbers as digits, wordings of one thing alike, negation taken out and counted. */
export interface PlainStatement {
  /** In their order, in lower case, with the possessive `'s` and a comma as words of their own. */
  readonly words: readonly string[];
  /** Said of what the words say: that it is so, or that it is not. */
  readonly negated: boolean;
  /** Words that were written with a capital behind the first word, or with digits or capitals inside. */
  readonly names: ReadonlySet<string>;
  /** What no word holds and what makes another statement of it, in its order: symbols, signs of numbers, operators, marks in front. */
  readonly signs: string;
  /** More than one sentence: never taken apart. */
  readonly isLong: boolean;
}

const TOKEN =
  /'s(?![\p{L}\p{N}])|[\p{L}\p{N}](?:(?:[\p{L}\p{M}\p{N}._+#/:@%-]|'(?!s(?![\p{L}\p{N}])))*[\p{L}\p{M}\p{N}+#%])?|[$€£](?=\p{N})|,|;/gu;
/** Of NFC, where "²" is not "2" yet. What only decorates words is none. */
const SIGN = /(?![`´¨©®™])[\p{S}\p{No}]|(?<![\p{L}\p{M}\p{N}])[-\u2212](?=\.?\p{N})|!(?==)|&&|[*\\]|(?<!\S)[#@/.](?=\p{L})/gu;
const SENTENCE_END = /[.!?]\s+\p{Lu}|\n|;/u;
const WORDS_MAX = 60;

/** What people put in front when they say a thing again. */
const LEAD_IN =
  /^(?:by the way|as (?:i|we|already) (?:said|mentioned|told you)(?: before| earlier)?|as (?:said|mentioned)(?: before| earlier)?|(?:please )?(?:remember|note)(?: that)?|just so you know|for the record|fyi|again|once more|to repeat|reminder|btw)[,:]?\s+/i;

const OPENED: ReadonlyArray<readonly [RegExp, string]> = [
  [/[\u2018\u2019\u02BC]/g, "'"],
  [/\bcan't\b|\bcannot\b/gi, 'can not'],
  [/\bwon't\b/gi, 'will not'],
  [/n't\b/gi, ' not'],
  [/'re\b/gi, ' are'],
  [/'ve\b/gi, ' have'],
  [/'ll\b/gi, ' will'],
  [/\bi'm\b/gi, 'i am'],
  [/\b(he|she|it|that|there|who)'s\b/gi, '$1 is'],
  [/(?<=\p{L})'s (?=(?:a|an|the|not|no|now|currently|in|at|on|moved|been|[a-z]+ing|[a-z]+ed) )/giu, ' is '],
  [/(?<=s)' /g, " 's "],
  [/(?<=\d),(?=\d{3}\b)/g, ''],
];

/** What a few words mean in one; longer ones first. The first is looked for among whole words in lower case. */
const PHRASES: ReadonlyArray<readonly [string, string]> = [
  ['the user', 'user'],
  ['at the moment', ''],
  ['these days', ''],
  ['right now', ''],
  ['for now', ''],
  ['as of now', ''],
  ['any more', ''],
  ['any longer', ''],
  ['has got', 'has'],
  ['have got', 'has'],
  ['gave up', 'not'],
  ['given up', 'not'],
  ['used to', 'not'],
  ['no longer', 'not'],
  ['moved out of', 'left'],
  ['time zone', 'timezone'],
  ['e-mail', 'email'],
];

const NUMERALS = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ');
const ONE_WORD: ReadonlyMap<string, string> = new Map([
  ...NUMERALS.map((word, value) => [word, `${value}`] as const),
  ...pairsOf('favorite favourite,favorites favourite,favourites favourite,color colour,colors colours,center centre,gray grey'),
  ...pairsOf('enjoy like,enjoys like,likes like,loves like,love like,adores like,liked like,has have,got have,owns own'),
  ...pairsOf('i user,me user,am is,are is,lives live,resides live,reside live,works work,preferred favourite'),
  ...pairsOf('photo picture,photos pictures,automobile car,phones phone,cellphone phone,mobile phone,maximum max,minimum min'),
]);
const NEGATED_WORD: ReadonlyMap<string, string> = new Map(
  pairsOf(
    'dislikes like,dislike like,hates like,hate like,detests like,disabled enabled,forbidden allowed,prohibited allowed,disallowed allowed,lacks have,unavailable available,inactive active,unsupported supported,unable able,refuses agrees,incompatible compatible,disconnected connected,incorrect correct,unsafe safe,impossible possible',
  ),
);
const NEGATIONS: ReadonlySet<string> = new Set(['not', 'never', 'no', 'stopped', 'quit', 'ceased', 'without']);
const SILENT: ReadonlySet<string> = new Set(
  'now currently recently just also already actually really please still today anymore presently does do did'.split(' '),
);

export function plainStatement(text: string): PlainStatement {
  const opened = OPENED.reduce((before, [from, to]) => before.replaceAll(from, to), text.normalize('NFKC').trim().replace(LEAD_IN, ''));
  const tokens = opened.match(TOKEN) ?? [];
  const names = new Set(tokens.flatMap((token, at) => (isName(token, at) ? [meaningOf(token.toLowerCase())] : [])));
  const phrased = PHRASES.reduce(
    (line, [from, to]) => line.replaceAll(` ${from} `, to === '' ? ' ' : ` ${to} `),
    ` ${tokens.map((token) => token.toLowerCase()).join(' ')} `,
  );
  let negations = 0;
  const words = phrased.split(' ').flatMap((token) => {
    if (token === '' || SILENT.has(token)) return [];
    const positive = NEGATED_WORD.get(token);
    if (NEGATIONS.has(token) || positive !== undefined) negations += 1;
    return NEGATIONS.has(token) ? [] : [positive ?? meaningOf(token)];
  });
  const signs = (text.normalize('NFC').match(SIGN) ?? []).join('');
  const isLong = SENTENCE_END.test(text.trim()) || words.length > WORDS_MAX;
  return { words: ownerFirst(ownUser(words), names), negated: negations % 2 === 1, names, signs, isLong };
}

/** "my" and "the user's" are one owner. */
function ownUser(words: readonly string[]): string[] {
  return words.flatMap((word) => (word === 'my' ? ['user', "'s"] : [word]));
}

const PARTS_MAX = 4;
const PREPOSITION = /^(?:in|on|at|for|with|by|from|to|about|of|as)$/;

/** "The parser of the user" and "the user's parser" are one thing, where something else is said behind it. */
function ownerFirst(words: readonly string[], names: ReadonlySet<string>): readonly string[] {
  const of = words.indexOf('of');
  const owner = words[of + 1] ?? '';
  const next = words[of + 2] ?? "'s";
  if (of < 1 || next === "'s" || names.has(next) || !(owner === 'user' || names.has(owner))) return words;
  const start = words.slice(0, of).findLastIndex((word) => PREPOSITION.test(word)) + 1;
  const thing = words.slice(start, of).filter((word) => word !== 'the');
  if (thing.length === 0 || thing.length >= PARTS_MAX || thing.includes("'s")) return words;
  return [...words.slice(0, start), owner, "'s", ...thing, ...words.slice(of + 2)];
}

function isName(token: string, at: number): boolean {
  return (at > 0 && /^\p{Lu}/u.test(token) && token !== 'I') || (/[\p{Lu}\p{N}]/u.test(token.slice(1)) && /\p{L}/u.test(token));
}

function meaningOf(word: string): string {
  return ONE_WORD.get(word) ?? word;
}

function pairsOf(list: string): Array<[string, string]> {
  return list.split(',').map((pair) => pair.split(' ') as [string, string]);
}
