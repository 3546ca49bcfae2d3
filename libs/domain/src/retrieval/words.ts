/** One searchable word: letters, marks and digits, or one emoji. It is stemmed and in lower case. */
export interface Word {
  readonly text: string;
  /** `whole` is an identifier of several parts, joined. `pair` and `char` are two or one characters of a script without spaces. */
  readonly kind: 'word' | 'number' | 'whole' | 'pair' | 'char';
  /** Whether the word is part of a name in code, such as `parse` in `parse_csv(`. */
  readonly inName: boolean;
}

/** Only this much of a text is split into words. It is cut again after NFKC, which can turn one character into eighteen. */
const TEXT_CHARS_MAX = 64_000;
/** A longer run of letters, such as a digest or base64, is searchable only by its beginning. */
const WORD_CHARS_MAX = 48;
const RUN = /[\p{L}\p{M}\p{N}_]+|\p{Extended_Pictographic}/gu;
/** Texts that have only ASCII are split with simpler patterns, which are much faster and give the same words. */
const PLAIN_TEXT = /^[\0-\x7f]*$/;
const PLAIN_RUN = /\w+/g;
const PLAIN_WORD = /^[a-z]+$/;
const EMOJI = /^\p{Extended_Pictographic}/u;
const PART = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lt}\p{Lm}\p{Lo}\p{M}]+|\p{N}+/gu;
const UNSPACED = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]+/gu;
const CASE_CHANGE = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu;
const BETWEEN_NAMES = /[\s/._"{}[\]()-]+/g;

/**
 * Splits text and code into words. `parse_csv`, `parseCsv` and "parse csv" give the same words. A script without spaces is split into single
 * characters and overlapping pairs, so that any two neighbours can be found.
 */
export function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  const start = text.slice(0, TEXT_CHARS_MAX);
  const isPlain = PLAIN_TEXT.test(start);
  const normal = isPlain ? start : start.normalize('NFKC').slice(0, TEXT_CHARS_MAX);
  for (const match of normal.matchAll(isPlain ? PLAIN_RUN : RUN)) {
    const [run] = match;
    const called = normal[match.index + run.length] === '(';
    if (EMOJI.test(run)) words.push({ text: run, kind: 'word', inName: false });
    else if (PLAIN_WORD.test(run)) words.push({ text: stem(run).slice(0, WORD_CHARS_MAX), kind: 'word', inName: called });
    else splitRun(run, called, words);
  }
  return words;
}

/** The words of a query. Single characters of a script without spaces are used only if there is no pair. */
export function queryWordsOf(text: string): Word[] {
  const words = wordsOf(text);
  return words.some((word) => word.kind === 'pair') ? words.filter((word) => word.kind !== 'char') : words;
}

/** The text with code names and paths split into plain words, for embedders: `src/userForms.ts` becomes "src user Forms ts". */
export function namesAsWords(text: string): string {
  return text.replace(CASE_CHANGE, ' ').replace(BETWEEN_NAMES, ' ').trim();
}

function splitRun(run: string, called: boolean, words: Word[]): void {
  let end = 0;
  for (const match of run.matchAll(UNSPACED)) {
    splitSpaced(run.slice(end, match.index), called, words);
    pushUnspaced(match[0], words);
    end = match.index + match[0].length;
  }
  splitSpaced(run.slice(end), called, words);
}

function splitSpaced(run: string, called: boolean, words: Word[]): void {
  const parts = [...run.matchAll(PART)].map((match) => match[0].toLowerCase());
  const inName = called || parts.length > 1;
  for (const part of parts) {
    const kind = /^\p{N}/u.test(part) ? 'number' : 'word';
    words.push({ text: stem(part).slice(0, WORD_CHARS_MAX), kind, inName });
  }
  if (parts.length > 1) words.push({ text: parts.join('').slice(0, WORD_CHARS_MAX), kind: 'whole', inName });
}

function pushUnspaced(run: string, words: Word[]): void {
  const chars = Array.from(run);
  chars.forEach((text, i) => {
    words.push({ text, kind: 'char', inName: false });
    if (i > 0) words.push({ text: `${chars[i - 1]}${text}`, kind: 'pair', inName: false });
  });
}

/** A simple English stemmer for plurals, -ing, -ed and a final e. Its mistakes do no harm, because queries are stemmed the same way. */
function stem(word: string): string {
  if (word.length < 4 || !'sgde'.includes(word[word.length - 1] ?? '') || !PLAIN_WORD.test(word)) return word;
  const singular = withoutPlural(word);
  const base = /^(.*[aeiouy].*)(?:ing|ed)$/.exec(singular)?.[1];
  if (base === undefined || base.length < 3) return withoutFinalE(singular);
  return /([^aeioulsz])\1$/.test(base) ? base.slice(0, -1) : base;
}

function withoutPlural(word: string): string {
  if (/(?:ss|us|is)$/.test(word)) return word;
  if (word.endsWith('ies') && word.length > 4) return `${word.slice(0, -3)}y`;
  if (/(?:x|ch|sh|ss)es$/.test(word)) return word.slice(0, -2);
  return word.endsWith('s') ? word.slice(0, -1) : word;
}

function withoutFinalE(word: string): string {
  return word.length > 4 && word.endsWith('e') && !word.endsWith('ee') ? word.slice(0, -1) : word;
}

/** Words that carry no topic, stemmed as in `wordsOf`. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  [
    'a an the and or but if then else than that this these those there here it its is are was were be been being am',
    'of in on at to from by for with without into onto out over under as not no nor so such too very can could should would',
    'will shall may might must do does did done has have had having which who whom whose what when where why how all any',
    'each every both either some other another same own only just also about between after before during while',
    'i you he she we they me him her us them my your his our their',
  ]
    .join(' ')
    .split(' ')
    .map((word) => stem(word)),
);

/** Parameters of Okapi BM25, at their customary values. */
const K1 = 1.2;
const B = 0.75;
/** The assumed average length of a text, in words. It is constant, so a stored weight stays valid when other records are added or deleted. */
const USUAL_WORDS = 64;
/** More occurrences of a word in a record are not counted. At 8, the weight already has at least three quarters of its maximum. */
export const COUNT_MAX = 8;
const QUERY_TERMS_MAX = 32;

/** The words in all searchable texts of a record, with the number of times that each occurs. */
export interface TermCounts {
  readonly counts: ReadonlyMap<string, number>;
  /** Number of words, repeats included. */
  readonly words: number;
}

export function termCounts(texts: readonly string[]): TermCounts {
  const counts = new Map<string, number>();
  let words = 0;
  for (const text of texts) {
    for (const word of wordsOf(text)) {
      counts.set(word.text, (counts.get(word.text) ?? 0) + 1);
      words += 1;
    }
  }
  return { counts, words };
}

/** The BM25 weight of a word that occurs `count` times in a record of `words` words. Callers multiply it by the word's `idf`. */
export function bm25Weight(count: number, words: number): number {
  const counted = Math.min(count, COUNT_MAX);
  return (counted * (K1 + 1)) / (counted + K1 * (1 - B + (B * words) / USUAL_WORDS));
}

/** How rare a word is. @param n number of records in the tenant's layer that have words @param df number of records with this word */
export function idf(n: number, df: number): number {
  return Math.log(1 + (n - df + 0.5) / (df + 0.5));
}

export function bm25Scores(query: string, texts: readonly TermCounts[], all = texts): number[] {
  const terms = queryTerms(query).map((term) => [term, idf(all.length, all.filter(({ counts }) => counts.has(term)).length)] as const);
  return texts.map(({ counts, words }) => terms.reduce((sum, [term, rare]) => sum + rare * bm25Weight(counts.get(term) ?? 0, words), 0));
}

/** The distinct words of a query. Stop words are used only if the query has no other words. */
export function queryTerms(text: string): readonly string[] {
  const words = [...new Set(queryWordsOf(text).map((word) => word.text))];
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return (telling.length > 0 ? telling : words).slice(0, QUERY_TERMS_MAX);
}
