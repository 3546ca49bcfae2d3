import { SENTENCE_MODEL } from './sentence-model.js';

/** The embedders that are built in, as settings name them, and the models under which memory keeps their vectors. */
const BUILT_IN_EMBEDDERS = { sentence: SENTENCE_MODEL.name, lexical: 'lexical-hash-1' } as const;
export type BuiltInEmbedder = keyof typeof BUILT_IN_EMBEDDERS;

const isBuiltIn = (name: string): name is BuiltInEmbedder => Object.hasOwn(BUILT_IN_EMBEDDERS, name);

/** Name of the model, where it may be called "sentence" or "lexical". */
export const modelNameOf = (name: string): string => (isBuiltIn(name) ? BUILT_IN_EMBEDDERS[name] : name);

/** null for a model of a server. Either name will do. */
export function builtInOf(name: string): BuiltInEmbedder | null {
  if (isBuiltIn(name)) return name;
  return (
    Object.keys(BUILT_IN_EMBEDDERS)
      .filter(isBuiltIn)
      .find((builtIn) => BUILT_IN_EMBEDDERS[builtIn] === name) ?? null
  );
}

/** The settings that start services with this model. @param dimension of its vectors, where it is known */
export function embedderSetting(name: string, dimension?: number): string {
  const builtIn = builtInOf(name);
  if (builtIn !== null) return `ETUDE_EMBEDDER=${builtIn}`;
  return `ETUDE_EMBEDDING_MODEL=${name}${dimension === undefined ? '' : ` ETUDE_EMBEDDING_DIMENSION=${dimension}`}`;
}
