import { createHash } from 'node:crypto';
import type { TestSet } from '../test-set.js';

/** An answer and its question. Without a question, the answer only makes the search harder. */
export interface Labelled {
  readonly key: string;
  readonly question: string | null;
  readonly answer: string;
}

export interface SetSize {
  readonly documentsMax: number;
  readonly queriesMax: number;
  /** Most characters of a document. 1,200 are about one chunk. */
  readonly charsMax: number;
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
const words = (text: string) => text.toLowerCase().match(/\p{L}{2,}/gu) ?? [];
/** The letters and digits of a text, for comparisons. */
export const bare = (text: string) => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '');

/**
 * A test set with at most these numbers of documents and queries. Digests choose them, so the order of the source doesn't matter.
 *
 * Equal answers become one document. Equal questions become one query, and all their answers are relevant to it.
 */
export function selectSet(all: readonly Labelled[], { documentsMax, queriesMax, charsMax }: SetSize): TestSet {
  const byDigest = all
    .map((one) => ({ ...one, answer: cutAtLine(one.answer, charsMax) }))
    .toSorted((a, b) => compare(digestOf(a.key), digestOf(b.key)));
  const unique = [...new Map(byDigest.toReversed().map((one) => [bare(one.answer), one])).values()].toReversed();
  const asked = unique.filter(({ question }) => question !== null && words(question).length >= 4);
  const chosen = new Set(asked.slice(0, documentsMax));
  for (const one of unique) if (chosen.size < documentsMax) chosen.add(one);
  const documents = [...chosen].map(({ key, answer }) => ({ id: digestOf(key).slice(0, 16), title: '', text: answer }));
  const byQuestion = Map.groupBy(
    [...chosen].filter((one) => asked.includes(one)),
    ({ question }) => bare(question ?? ''),
  );
  const groups = [...byQuestion].toSorted(([a], [b]) => compare(digestOf(a), digestOf(b))).slice(0, queriesMax);
  return {
    documents: documents.toSorted((a, b) => compare(a.id, b.id)),
    queries: groups.map(([text, [first]]) => ({ id: `q${digestOf(text).slice(0, 15)}`, text: first?.question ?? '' })),
    judgements: groups.flatMap(([text, answers]) =>
      answers.map(({ key }) => ({ query: `q${digestOf(text).slice(0, 15)}`, document: digestOf(key).slice(0, 16), grade: 1 })),
    ),
  };
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function cutAtLine(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const cut = text.slice(0, charsMax);
  return cut.slice(0, Math.max(cut.lastIndexOf('\n'), cut.lastIndexOf(' '), charsMax / 2)).trimEnd();
}
