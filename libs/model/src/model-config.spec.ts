import { describe, expect, it } from 'vitest';
import { chatModelFrom, modelConfig } from './model-config.js';
import { startScriptedModel } from './scripted-server.js';

const config = (env: Record<string, string>) => modelConfig.parse(env);
const LOCAL = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' };
const wrong = (field: string) => expect.objectContaining({ code: 'FAILED_PRECONDITION', message: expect.stringContaining(field) });

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
    model.close();
    await server.close();
  });
});
