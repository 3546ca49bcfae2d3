import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFolder } from '@etude/test-support/test-folder';
import { describe, expect, it } from 'vitest';
import { CachedEmbedder } from './cached-embedder.js';
import { chatModelFrom, embedderConfig, embedderFrom, modelConfig } from './model-config.js';
import { ServedEmbedder } from './served/served-embedder.js';
import { startScriptedModel } from './scripted-server.js';

const LOCAL = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' };
const NOWHERE = { ETUDE_EMBEDDER_PATH: '/nowhere' };
const wrong = (field: string) => expect.objectContaining({ code: 'FAILED_PRECONDITION', message: expect.stringContaining(field) });

async function from(env: Record<string, string>) {
  const warnings: string[] = [];
  const embedder = await embedderFrom(embedderConfig.parse(env), { warn: (warning) => warnings.push(warning) });
  return { embedder, warnings, model: embedder.profile.model };
}

/** A folder that looks as if the model were in it. */
async function modelFolder(): Promise<string> {
  const folder = testFolder();
  for (const [name, bytes] of [
    ['model.safetensors', 90_868_376],
    ['tokenizer.json', 466_247],
  ] as const) {
    await writeFile(join(folder, name), '');
    await truncate(join(folder, name), bytes);
  }
  return folder;
}

describe('embedderFrom', () => {
  it('takes the sentence model if its files are there', async () => {
    const folder = await modelFolder();
    expect(await from({ ETUDE_EMBEDDER_PATH: folder })).toMatchObject({ model: 'all-minilm-l6-v2', warnings: [] });
    expect(await from({ ETUDE_EMBEDDER_PATH: folder, ETUDE_EMBEDDER: 'lexical' })).toMatchObject({ model: 'lexical-hash-1', warnings: [] });
  });

  it('uses the lexical embedder with one warning if they are missing', async () => {
    const { model, warnings } = await from(NOWHERE);
    expect(model).toBe('lexical-hash-1');
    expect(warnings).toEqual([expect.stringContaining('model.safetensors, tokenizer.json of the sentence model are not in /nowhere')]);
    expect((await from({ ...NOWHERE, ETUDE_EMBEDDER: 'lexical' })).warnings).toEqual([]);
  });

  it('refuses the sentence model if it is set and a file is too short', async () => {
    const folder = await modelFolder();
    await truncate(join(folder, 'model.safetensors'), 1_000);
    await expect(from({ ETUDE_EMBEDDER_PATH: folder, ETUDE_EMBEDDER: 'sentence' })).rejects.toEqual(wrong('ETUDE_EMBEDDER'));
  });

  it('takes the sentence model of an embedding process if its socket is set, without files and a cache here', async () => {
    const served = { ...NOWHERE, ETUDE_EMBEDDER_SOCKET: '/run/embedder' };
    const { embedder, model, warnings } = await from(served);
    expect([embedder.constructor, model, warnings]).toEqual([ServedEmbedder, 'all-minilm-l6-v2', []]);
    expect((await from({ ...served, ETUDE_EMBEDDER: 'lexical' })).model).toBe('lexical-hash-1');
  });

  it('uses the server if its embedding model is set', async () => {
    const named = { ...LOCAL, ETUDE_EMBEDDER: 'lexical', ETUDE_EMBEDDING_MODEL: 'nomic' };
    await expect(from(named)).rejects.toEqual(wrong('ETUDE_EMBEDDING_DIMENSION'));
    expect((await from({ ...named, ETUDE_EMBEDDING_DIMENSION: '768' })).embedder.profile).toMatchObject({ model: 'nomic', dimension: 768 });
    const known = await from({ OPENAI_API_KEY: 'k', ETUDE_EMBEDDING_MODEL: 'text-embedding-3-small' });
    expect(known.embedder.profile.dimension).toBe(1_536);
  });

  it('sends the key of the chat server to no other server', async () => {
    const env = {
      ...LOCAL,
      OPENAI_API_KEY: 'k',
      ETUDE_EMBEDDING_MODEL: 'text-embedding-3-small',
      ETUDE_EMBEDDING_BASE_URL: 'https://api.openai.com/v1',
    };
    await expect(from(env)).rejects.toEqual(wrong('ETUDE_EMBEDDING_API_KEY'));
  });

  it('caches unless the cache size is 0', async () => {
    expect((await from(NOWHERE)).embedder).toBeInstanceOf(CachedEmbedder);
    expect((await from({ ...NOWHERE, ETUDE_EMBEDDING_CACHE_MAX_BYTES: '0' })).embedder).not.toBeInstanceOf(CachedEmbedder);
  });

  it('overrides the profile of any embedder by settings', async () => {
    const { profile } = (
      await from({
        ...NOWHERE,
        ETUDE_EMBEDDING_DENSE_WEIGHT: '0.25',
        ETUDE_EMBEDDING_COSINE_UNRELATED: '0.1',
        ETUDE_EMBEDDING_COSINE_SAME_TASK: '0.5',
        ETUDE_EMBEDDING_COSINE_SAME_WORDS: '0.75',
      })
    ).embedder;
    expect(profile).toMatchObject({ model: 'lexical-hash-1', denseWeight: 0.25 });
    expect([0.1, 0.5, 0.75].map((cosine) => profile.calibrate(cosine))).toEqual([0.3, 0.7, 0.9]);
  });

  it.each<Record<string, string>>([
    { ETUDE_EMBEDDING_COSINE_SAME_TASK: '0.5' },
    {
      ETUDE_EMBEDDING_COSINE_UNRELATED: '0.1',
      ETUDE_EMBEDDING_COSINE_SAME_TASK: '0.8',
      ETUDE_EMBEDDING_COSINE_SAME_WORDS: '0.7',
    },
  ])('refuses cosines that do not rise: %o', async (env) => {
    await expect(from({ ...NOWHERE, ...env })).rejects.toEqual(wrong('ETUDE_EMBEDDING_COSINE_SAME_TASK'));
  });
});

const config = (env: Record<string, string>) => modelConfig.parse(env);

describe('model settings', () => {
  it('needs key and model only for the default server', () => {
    expect(() => chatModelFrom(config({}))).toThrow(wrong('OPENAI_API_KEY'));
    expect(() => chatModelFrom(config({ OPENAI_API_KEY: 'k' }))).toThrow(wrong('OPENAI_MODEL'));
    expect(() => chatModelFrom(config({ OPENAI_API_KEY: 'k', OPENAI_MODEL: 'm' }))).not.toThrow();
    expect(() => chatModelFrom(config(LOCAL))).not.toThrow();
  });

  it.each([
    { OPENAI_BASE_URL: 'localhost:8000' },
    { ETUDE_MODEL_CONCURRENCY: '0' },
    { ETUDE_MODEL_PRICE_INPUT_USD_PER_MTOK: '-1' },
    { ETUDE_MODEL_ATTEMPTS_MAX: 'many' },
  ])('refuses %o', (env) => {
    expect(modelConfig.safeParse(env).success).toBe(false);
  });

  it('calls the configured server and counts its price', async () => {
    const server = await startScriptedModel({ script: { default: { reply: 'hi', usage: { input_tokens: 1_000, output_tokens: 1_000 } } } });
    const model = chatModelFrom(
      config({ OPENAI_BASE_URL: server.url, ETUDE_MODEL_PRICE_INPUT_USD_PER_MTOK: '1', ETUDE_MODEL_PRICE_OUTPUT_USD_PER_MTOK: '3' }),
    );
    const response = await model.chat({ messages: [{ role: 'user', content: 'hello' }] }, new AbortController().signal);
    expect(response).toMatchObject({ text: 'hi', model: 'scripted/script', costUsd: 0.004 });
    await server.close();
  });
});
