import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { answerFrom, ask, broken, chatModel, delta, json, never, raw, rawServer, whole } from './raw-server.js';

const DONE = 'data: [DONE]\n\n';

const answerTo = async (answer: Parameters<typeof rawServer>[0]) => answerFrom((await rawServer(answer)).url);

/** Refuses every request with this field in it. */
const refusing = (field: string, message: string) =>
  rawServer((response, request) => {
    const refused = field in request.body && request.body[field] !== false;
    (refused ? json({ error: { message } }, 400) : json(whole('hi')))(response, request);
  });

describe('answers of minimal servers', () => {
  it('may be one JSON body in place of a stream', async () => {
    const answer = { text: 'hi', finishReason: 'stop', model: 'm', scripted: false, outputTokens: 1, inputTokens: 2 };
    expect(await answerTo(json(whole('hi')))).toMatchObject(answer);
  });

  it.each([
    ['a body called an event stream that is JSON', raw(`\uFEFF \n${JSON.stringify(whole('ab'))}`)],
    ['content as a list of parts', json(whole([{ type: 'text', text: 'a' }, 'b', { type: 'image' }]))],
    ['a stream without [DONE] after a finish reason', raw(delta('ab') + delta('', 'stop'))],
    ['a stream without finish reason before [DONE]', raw(delta('ab') + DONE)],
    ['a finished stream whose connection breaks', broken(delta('ab', 'stop'))],
    ['an event over several data lines', raw('data: {"choices":\ndata: [{"delta":{"content":"ab"},"finish_reason":"stop"}]}\n\n')],
    [
      'comments, other fields, CRLF, and a last event without its blank line',
      raw(`: ping\r\nevent: message\r\nid: 1\r\n${delta('a').trim()}\r\n\r\n: ping\r\n\r\n${delta('b', 'stop').trim()}`),
    ],
    ['a whole message inside an event', raw(`data: ${JSON.stringify(whole('ab', { finish_reason: 'stop' }))}\n\n`)],
  ])('may be %s', async (_what, answer) => {
    expect((await answerTo(answer)).text).toBe('ab');
  });

  it('end at [DONE], even if the connection stays open', async () => {
    const server = await rawServer((response) => response.writeHead(200).write(delta('hi') + DONE));
    expect((await answerFrom(server.url)).text).toBe('hi');
  });

  it('have estimated tokens if the server counts zero', async () => {
    const body = { ...whole('four letters!'), usage: { prompt_tokens: 0, completion_tokens: 0 } };
    expect(await answerTo(json(body))).toMatchObject({ inputTokens: 2, outputTokens: 4 });
  });

  it('sends no Authorization without a key, and the key with one', async () => {
    const server = await rawServer(json(whole('hi')));
    await answerFrom(server.url);
    await answerFrom(server.url, { apiKey: 'secret' });
    expect(server.requests.map((request) => request.headers.authorization)).toEqual([undefined, 'Bearer secret']);
  });

  it('come from the first listed model, or from default', async () => {
    const listing = await rawServer(json({ data: [{ id: 'one' }, { id: 'two' }] }), json(whole('hi')));
    const model = chatModel(listing.url, { model: undefined });
    await model.chat(ask(), never());
    await model.chat(ask(), never());
    expect(listing.requests.map((request) => request.body['model'])).toEqual([undefined, 'one', 'one']);
    for (const noList of [json({ detail: 'Not Found' }, 404), json({}, 500), json([]), broken('')]) {
      const bare = await rawServer(noList, json(whole('hi')));
      await answerFrom(bare.url, { model: undefined });
      expect(bare.requests[1]?.body['model']).toBe('default');
    }
  });

  it('use one connection for calls one after the other', async () => {
    const server = await rawServer(raw(delta('hi', 'stop') + DONE));
    const model = chatModel(server.url);
    for (let i = 0; i < 5; i++) await model.chat(ask(), never());
    expect(server.connections()).toBe(1);
  });

  it('use no more connections than the limit of concurrency', async () => {
    const answers: Array<() => void> = [];
    const server = await rawServer((response, request) => void answers.push(() => json(whole('hi'))(response, request)));
    const model = chatModel(server.url, { concurrency: 2 });
    const calls = [1, 2, 3].map(() => model.chat(ask(), never()));
    await until(() => answers.length === 2);
    answers[0]?.();
    await until(() => answers.length === 3);
    answers.slice(1).forEach((answer) => answer());
    expect((await Promise.all(calls)).map(({ text }) => text)).toEqual(['hi', 'hi', 'hi']);
    expect(server.connections()).toBe(2);
  });

  it('come through a proxy if one is set', async () => {
    const proxy = await rawServer(json(whole('hi')));
    expect((await answerFrom('http://models.example/v1', { proxyUrl: new URL(proxy.url).origin })).text).toBe('hi');
    expect(proxy.requests[0]?.path).toBe('http://models.example/v1/chat/completions');
  });

  it('may split a character over two packets', async () => {
    const stream = Buffer.from(delta('😀', 'stop') + DONE);
    const middle = stream.indexOf('😀') + 2;
    const server = await rawServer((response) => {
      response.writeHead(200).write(stream.subarray(0, middle), () => response.end(stream.subarray(middle)));
    });
    expect((await answerFrom(server.url)).text).toBe('😀');
  });
});

describe('servers that refuse a part of the protocol', () => {
  it('are sent later requests without the refused part', async () => {
    const server = await refusing('stream_options', 'Unrecognized request argument: stream_options');
    const model = chatModel(server.url);
    expect((await model.chat(ask(), never())).text).toBe('hi');
    await model.chat(ask(), never());
    expect(server.requests.map((request) => 'stream_options' in request.body)).toEqual([true, false, false]);
    expect(server.requests[2]?.body['stream']).toBe(true);
  });

  it('are called without streaming if they refuse streams', async () => {
    const server = await refusing('stream', 'streaming is not supported');
    expect((await answerFrom(server.url)).text).toBe('hi');
  });

  it('get the token limit under the name that they accept', async () => {
    const server = await refusing('max_tokens', "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.");
    await chatModel(server.url).chat({ ...ask(), outputTokensMax: 50 }, never());
    expect(server.requests[1]?.body).toMatchObject({ max_completion_tokens: 50, stream: true });
  });

  it('get no temperature if they refuse it', async () => {
    const server = await refusing('temperature', "Unsupported value: 'temperature' does not support 0 with this model.");
    await chatModel(server.url).chat({ ...ask(), temperature: 0 }, never());
    expect(server.requests[1]?.body).not.toHaveProperty('temperature');
  });

  it('are called once if they refuse the prompt', async () => {
    const server = await rawServer(json({ error: { message: "This model's maximum context length is 8192 tokens." } }, 400));
    await expect(answerFrom(server.url)).rejects.toMatchObject({
      code: 'MODEL_REFUSED',
      message: expect.stringContaining('maximum context length'),
    });
    expect(server.requests).toHaveLength(1);
  });
});
