/** Two texts and how they belong together, judged by people: nearly the same words, the same in other words, or not the same. */
export interface LabelledPair {
  readonly a: string;
  readonly b: string;
  readonly same: 'words' | 'task' | 'no';
}

export const pairs = (same: LabelledPair['same'], texts: ReadonlyArray<readonly [string, string]>): LabelledPair[] =>
  texts.map(([a, b]) => ({ a, b, same }));
