import type { ReadScope } from '@etude/domain/ports/memory';
import { recollect } from '@etude/domain/recall/recollect';
import { requireScope } from '@etude/domain/retrieval/scopes';
import type { Memory, RecallRequest, Recollection } from '../memory.js';

const FACTS = 5;
const EXPERIENCES = 3;
const PROCEDURES = 3;
const TOKENS_MAX = 2_000;
/** A summary stands for its episode, and that is an experience. */
const KNOWLEDGE = ['fact', 'chunk', 'reflection'] as const;

/** One call over all layers; see `Memory.recall`. */
export async function recallMemory(
  { episodic, semantic, procedural }: Pick<Memory, 'episodic' | 'semantic' | 'procedural'>,
  scope: ReadScope,
  request: RecallRequest,
  { partial = false }: { readonly partial?: boolean } = {},
): Promise<Recollection> {
  requireScope(scope);
  const { context: cue, facts = FACTS, experiences = EXPERIENCES, procedures = PROCEDURES, tokensMax = TOKENS_MAX } = request;
  const knowledge: typeof semantic.search = (within, query) => semantic.search(within, { ...query, kinds: KNOWLEDGE });
  const counts = { semantic: facts, episodic: experiences, procedural: procedures };
  const layers = { episodic, semantic: { search: knowledge }, procedural };
  const floor = request.similarityMin === undefined ? {} : { similarityMin: request.similarityMin };
  const { hits, tokens, missing } = await recollect({ scope, cue, counts, tokensMax, partial, ...floor }, layers);
  const of = (layer: keyof typeof counts) => hits.filter((hit) => hit.layer === layer);
  return { facts: of('semantic'), experiences: of('episodic'), procedures: of('procedural'), tokens, missing };
}
