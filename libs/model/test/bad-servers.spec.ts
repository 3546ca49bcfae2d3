import { freePort } from '@etude/test-support/ports';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { answerFrom, broken, delta, failure, impatient, json, raw, rawServer, whole } from './raw-server.js';

const good = json(whole('whole'));

describe('servers that are busy or broken', () => {
  it('are retried after the time that a 429 names, in seconds or as a date', async () => {
    const { waits, timers } = impatient();
    const date = new Date(Date.now() + 30_000).toUTCString();
    const server = await rawServer(
      json({ error: 'slow down' }, 429, { 'retry-after': '7' }),
      json({}, 429, { 'retry-after': date }),
      json({}, 429, { 'retry-after': '86400' }),
      good,
    );
    expect((await answerFrom(server.url, { timers, retry: { waitTotalMaxMs: 1e6 } })).text).toBe('whole');
    expect(waits[0]).toBe(7_000);
    expect(waits[1]).toBeGreaterThan(10_000);
    expect(waits[1]).toBeLessThanOrEqual(30_000);
    expect(waits[2]).toBe(60_000);
  });

  it('end with the message of a 429 and advice', async () => {
    const server = await rawServer(json({ error: { message: 'You are too fast.' } }, 429));
    const error = await failure(answerFrom(server.url));
    expect(error).toMatchObject({ code: 'MODEL_RATE_LIMITED' });
    expect(error.message).toMatch(
      /127\.0\.0\.1:\d+\/v1 answered 429: You are too fast\. Asked 6 times, waiting 7\.8 s in between\. Lower ETUDE_MODEL_CONCURRENCY/,
    );
    expect(server.requests).toHaveLength(6);
  });

  it.each([408, 409, 500, 502, 503, 504, 529])('are retried after %i, with growing waits', async (status) => {
    const { waits, timers } = impatient();
    const server = await rawServer(json('<html>oops</html>', status), json({ detail: 'overloaded' }, status), good);
    expect((await answerFrom(server.url, { timers })).text).toBe('whole');
    expect(waits).toEqual([250, 500]);
  });

  it.each([
    [401, 'OPENAI_API_KEY'],
    [403, 'OPENAI_API_KEY'],
    [404, 'OPENAI_BASE_URL'],
    [400, 'OPENAI_MODEL'],
    [501, 'OPENAI_BASE_URL'],
    [308, 'OPENAI_BASE_URL'],
  ])('are not retried after %i, and the error names %s', async (status, setting) => {
    const server = await rawServer(json({ error: { message: 'no, sk-very-secret is wrong' } }, status));
    const error = await failure(answerFrom(server.url, { apiKey: 'sk-very-secret' }));
    expect(error.code).toBe('MODEL_REFUSED');
    expect(error.message).toContain(setting);
    expect(error.message).toContain(`answered ${status}: no, [key] is wrong.`);
    expect(JSON.stringify(error) + error.message).not.toContain('sk-very-secret');
    expect(server.requests).toHaveLength(1);
  });

  it('are not retried when the account has no credit', async () => {
    const server = await rawServer(json({ error: { message: 'You exceeded your current quota.', code: 'insufficient_quota' } }, 429));
    expect(await failure(answerFrom(server.url))).toMatchObject({
      code: 'MODEL_REFUSED',
      message: expect.stringContaining('billing'),
    });
  });

  it.each([
    ['nothing', raw('')],
    ['a stream without text', raw(delta('', 'stop') + 'data: [DONE]\n\n')],
    ['a message without content', json(whole(null))],
    ['no choices', json({ choices: [] })],
  ])('are retried after %s, then the error says that the answer is empty', async (_what, answer) => {
    const recovering = await rawServer(answer, good);
    expect((await answerFrom(recovering.url)).text).toBe('whole');
    const empty = await rawServer(answer);
    expect(await failure(answerFrom(empty.url))).toMatchObject({
      code: 'MODEL_ANSWER_EMPTY',
      message: expect.stringContaining('Asked 3 times'),
    });
    expect(empty.requests).toHaveLength(3);
  });

  it.each([
    ['a stream that ends in the middle', raw(delta('half'))],
    ['a stream whose connection breaks', broken(delta('half'))],
    ['a stream that breaks inside an event', broken(delta('half').slice(0, 20))],
    ['half a JSON body', raw(JSON.stringify(whole('half of it')).slice(0, 40), { 'content-type': 'application/json' })],
    ['a body shorter than announced', broken('{"choices"', { 'content-length': '500' })],
  ])('are retried after %s, then the error says that the answer was cut', async (_what, answer) => {
    const recovering = await rawServer(answer, good);
    expect((await answerFrom(recovering.url)).text).toBe('whole');
    const cutting = await rawServer(answer);
    expect(await failure(answerFrom(cutting.url))).toMatchObject({ code: 'MODEL_ANSWER_TRUNCATED' });
    expect(cutting.requests).toHaveLength(3);
  });

  it('are refused or retried by an error in an answer with status 200', async () => {
    const overloaded = `data: ${JSON.stringify({ error: { message: 'overloaded', code: 503 } })}\n\n`;
    const server = await rawServer(raw(delta('ha') + overloaded), json({ error: { message: 'slow', type: 'rate_limit_error' } }), good);
    expect((await answerFrom(server.url)).text).toBe('whole');
    const refusing = await rawServer(json({ error: { message: 'no such model', code: 404 } }));
    expect(await failure(answerFrom(refusing.url))).toMatchObject({ code: 'MODEL_REFUSED' });
  });

  it('are refused when they are no model servers', async () => {
    const server = await rawServer(raw('<!doctype html><title>Hello</title>', { 'content-type': 'text/html' }));
    expect(await failure(answerFrom(server.url))).toMatchObject({
      code: 'MODEL_REFUSED',
      message: expect.stringMatching(/other than a chat completion.*Hello.*OPENAI_BASE_URL/),
    });
  });

  it('can not be reached when nothing listens', async () => {
    const port = await freePort();
    const error = await failure(answerFrom(`http://user:pass@127.0.0.1:${port}/v1?key=1`));
    expect(error).toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringContaining(`http://127.0.0.1:${port}/v1 can't be reached: ECONNREFUSED`),
    });
    expect(error.message).not.toContain('pass');
  });
});

describe('servers that say nothing or too much', () => {
  it('fail after a silence, before and inside an answer', async () => {
    const mute = await rawServer(() => {});
    const limits = { idleTimeoutMs: 30 };
    const retry = { attemptsMax: 2 };
    expect(await failure(answerFrom(mute.url, { limits, retry }))).toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringContaining('sent nothing for 0.03 s'),
    });
    const stuck = await rawServer((response) => response.writeHead(200).write(delta('ha')));
    expect(await failure(answerFrom(stuck.url, { limits, retry }))).toMatchObject({ code: 'MODEL_UNAVAILABLE' });
  });

  it('fail at an answer that never ends', async () => {
    const server = await rawServer((response) => {
      const timer = setInterval(() => response.write(': still thinking\n\n'), 5);
      response.once('close', () => clearInterval(timer));
    });
    const late = await failure(answerFrom(server.url, { limits: { callTimeoutMs: 60 }, retry: { attemptsMax: 1 } }));
    expect(late).toMatchObject({ code: 'MODEL_UNAVAILABLE', message: expect.stringContaining('within 0.06 s') });
  });

  it('are read up to the limit of an answer and no further', async () => {
    const page = delta('é'.repeat(1_500));
    let closed = false;
    const server = await rawServer((response) => {
      const write = () => {
        while (!response.destroyed && response.write(page));
      };
      response.on('drain', write).once('close', () => (closed = true));
      write();
    });
    const response = await answerFrom(server.url, { answerBytesMax: 100_001 });
    expect(response.finishReason).toBe('length');
    expect(response.text).toBe('é'.repeat(50_000));
    await until(() => closed);
  });
});
