import { embedderConformance } from '@etude/domain/testing/embedder-conformance';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CONNECTION, impatient, json, rawServer } from '../test/raw-server.js';
import { CachedEmbedder } from './cached-embedder.js';
import { OpenAiEmbedder, type OpenAiEmbedderOptions } from './openai-embedder.js';

/** An embedder whose server makes the vectors of the lexical embedder. */
async function lexical() {
  const inner = new LexicalEmbedder();
  const server = await rawServer((response, request) => {
    void inner.embed(request.body['input'] as string[]).then((made) => vectors(...made.map((vector) => [...vector]))(response, request));
  });
  return { embedder: embedderFor(server.url, { model: 'words', dimension: inner.profile.dimension }) };
}

function embedderFor(baseUrl: string, options: Partial<OpenAiEmbedderOptions> = {}) {
  const embedder = new OpenAiEmbedder({
    ...CONNECTION,
    model: 'm',
    dimension: 3,
    batchSize: 64,
    textCharsMax: 16_000,
    baseUrl,
    timers: impatient().timers,
    ...options,
  });
  onTestFinished(() => embedder.close());
  return embedder;
}

const vectors = (...embeddings: unknown[]) => json({ data: embeddings.map((embedding) => ({ embedding })) });

describe('OpenAiEmbedder', () => {
  embedderConformance(lexical);

  it('asks for floats, in batches, without empty or overlong texts', async () => {
    const server = await rawServer((response, request) =>
      vectors(...(request.body['input'] as string[]).map(() => [1, 2, 3]))(response, request),
    );
    await embedderFor(server.url, { batchSize: 2, textCharsMax: 5 }).embed(['', 'a long text', 'c']);
    expect(server.requests.map((request) => request.body)).toEqual([
      { model: 'm', input: [' ', 'a lon'], encoding_format: 'float' },
      { model: 'm', input: ['c'], encoding_format: 'float' },
    ]);
  });

  it('puts vectors into the order of the texts', async () => {
    const data = [1, 0].map((index) => ({ index, embedding: [index, 0, 0] }));
    const server = await rawServer(json({ data }), json({ data: data.map(({ embedding }) => ({ index: 0, embedding })) }));
    const order = async () => (await embedderFor(server.url).embed(['a', 'b'])).map(([first]) => first);
    expect([await order(), await order()]).toEqual([
      [0, 1],
      [1, 0],
    ]);
  });

  it('retries when vectors are missing or the server is busy', async () => {
    const server = await rawServer(json({}, 503), vectors([1, 2, 3]), vectors([1, 2, 3], [4, 5, 6]));
    expect(await embedderFor(server.url).embed(['a', 'b'])).toHaveLength(2);
    expect(server.requests).toHaveLength(3);
  });

  it('names its own settings when refused', async () => {
    const server = await rawServer(json({ error: { message: 'no' } }, 401));
    const settings = { baseUrl: 'ETUDE_EMBEDDING_BASE_URL', apiKey: 'ETUDE_EMBEDDING_API_KEY', model: 'ETUDE_EMBEDDING_MODEL' };
    await expect(embedderFor(server.url, { settings }).embed(['a'])).rejects.toMatchObject({
      code: 'MODEL_REFUSED',
      message: expect.stringContaining('ETUDE_EMBEDDING_API_KEY'),
    });
  });
});

describe('CachedEmbedder', () => {
  embedderConformance(async () => {
    const { embedder } = await lexical();
    return { embedder: new CachedEmbedder(embedder) };
  });

  it('embeds the same text once and drops the least recently used one', async () => {
    const asked: string[][] = [];
    const inner = {
      profile: { model: 'm', dimension: 1, denseWeight: 1, calibrate: (cosineValue: number) => cosineValue },
      embed: async (texts: readonly string[]) => {
        asked.push([...texts]);
        return texts.map((text) => Float32Array.of(text.length));
      },
    };
    const embedder = new CachedEmbedder(inner, 2 * 254);
    expect((await embedder.embed(['a', 'bb', 'a'])).map((vector) => vector[0])).toEqual([1, 2, 1]);
    await embedder.embed(['a']);
    await embedder.embed(['ccc']);
    await embedder.embed(['a', 'bb']);
    expect(asked).toEqual([['a', 'bb'], ['ccc'], ['bb']]);
  });
});
