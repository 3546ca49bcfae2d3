import type { BeirDocument, BeirJudgement, BeirQuery } from './beir.js';

/** A labelled set in memory; ids are unique, and each judgement names an existing query and document. */
export interface TestSet {
  readonly documents: readonly BeirDocument[];
  readonly queries: readonly BeirQuery[];
  readonly judgements: readonly BeirJudgement[];
}

/** The origin of a generated set, written beside the set. */
export interface Origin {
  readonly name: string;
  /** The questions, the documents, and why the labels are right. */
  readonly description: string;
  readonly source: string;
  readonly licence: string;
}

export interface GeneratedSet extends Origin {
  /** The same source gives the same set. */
  make(cacheDir: string): Promise<TestSet> | TestSet;
}
