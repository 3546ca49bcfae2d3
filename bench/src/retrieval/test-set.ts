import type { BeirDocument, BeirJudgement, BeirQuery } from './beir.js';

/** A labelled set in memory; ids are unique, and each judgement names a query and a document that there are. */
export interface TestSet {
  readonly documents: readonly BeirDocument[];
  readonly queries: readonly BeirQuery[];
  readonly judgements: readonly BeirJudgement[];
}

/** Where a generated set comes from; written beside it. */
export interface Origin {
  readonly name: string;
  /** What is asked, what is found, and why the labels are right. */
  readonly description: string;
  readonly source: string;
  readonly licence: string;
}

export interface GeneratedSet extends Origin {
  /** The same source gives the same set. */
  make(cacheDir: string): Promise<TestSet> | TestSet;
}
