/**
 * Orders texts by how well they answer a query. Not in it: what becomes of texts that it leaves out, and of its failures.
 *
 * @returns places in `texts`, best first @throws EtudeError MODEL_*; an AbortError
 */
export interface Reranker {
  rank(query: string, texts: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}
