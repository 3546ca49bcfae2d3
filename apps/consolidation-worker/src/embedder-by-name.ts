import { SENTENCE_MODEL } from '@etude/contracts/sentence-model';
import type { Embedder } from '@etude/domain/ports/embedder';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { type EmbedderConfig, embedderFrom } from '@etude/model/model-config';

/** @throws EtudeError FAILED_PRECONDITION where its files, its key or its dimension are not there */
export async function embedderByName(config: EmbedderConfig, model: string, dimension: number | null): Promise<Embedder> {
  // What the settings say of similarity is meant for the model that is in use.
  const base: EmbedderConfig = {
    ...config,
    ETUDE_EMBEDDING_MODEL: undefined,
    ETUDE_EMBEDDING_DIMENSION: undefined,
    ETUDE_EMBEDDING_DENSE_WEIGHT: undefined,
    ETUDE_EMBEDDING_COSINE_UNRELATED: undefined,
    ETUDE_EMBEDDING_COSINE_SAME_TASK: undefined,
    ETUDE_EMBEDDING_COSINE_SAME_WORDS: undefined,
  };
  const lexical = new LexicalEmbedder();
  if (model === 'lexical' || model === lexical.profile.model) return lexical;
  if (model === 'sentence' || model === SENTENCE_MODEL.name) return embedderFrom({ ...base, ETUDE_EMBEDDER: 'sentence' });
  return embedderFrom({ ...base, ETUDE_EMBEDDING_MODEL: model, ...(dimension === null ? {} : { ETUDE_EMBEDDING_DIMENSION: dimension }) });
}
