import OpenAI from 'openai';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ScriptInput } from './script.js';
import { startScriptedModel } from './scripted-server.js';

async function start(script: ScriptInput) {
  const server = await startScriptedModel({ script });
  onTestFinished(() => server.close());
  return { server, client: new OpenAI({ baseURL: server.url, apiKey: 'any', maxRetries: 0 }) };
}

const user = (content: string) => ({ model: 'm', messages: [{ role: 'user' as const, content }] });

describe('the scripted model', () => {
  it('answers the vendor client, whole and streamed, with the same parts', async () => {
    const reply = 'A text longer than a piece of a stream, with 😀 and\nlines.';
    const { client } = await start({ name: 'demo', default: { reply } });
    const whole = await client.chat.completions.create(user('hello'));
    const streamed = await client.chat.completions
      .stream({ ...user('hello'), stream_options: { include_usage: true } })
      .finalChatCompletion();
    expect(whole).toMatchObject({ model: 'scripted/demo', system_fingerprint: 'scripted', choices: [{ finish_reason: 'stop' }] });
    expect([whole, streamed].map(({ choices }) => choices[0]?.message.content)).toEqual([reply, reply]);
    expect(streamed.usage).toEqual(whole.usage);
    expect(whole.usage).toMatchObject({ prompt_tokens: 2 });
  });

  it('marks every answer, errors too', async () => {
    const { server, client } = await start({ name: 'demo', rules: [{ match: 'x', status: 500, headers: { 'retry-after': '7' } }] });
    expect((await client.models.list()).data.map((model) => model.id)).toEqual(['scripted/demo']);
    const answers = await Promise.all([
      fetch(`${server.url}/models`),
      fetch(`${server.url}/nothing`),
      post(server.url, user('x')),
      post(server.url, user('y')),
    ]);
    expect(answers.map((answer) => [answer.status, answer.headers.get('x-etude-scripted')])).toEqual([
      [200, '1'],
      [404, '1'],
      [500, '1'],
      [404, '1'],
    ]);
    expect(answers[2]?.headers.get('retry-after')).toBe('7');
  });

  it.each([
    ['{', 400, 'not JSON'],
    ['{"messages": []}', 400, 'messages'],
    ['{"messages": [{"content": "x"}]}', 400, 'messages.0.role'],
  ])('refuses the body %s', async (body, status, message) => {
    const { server } = await start({ default: { reply: 'x' } });
    const response = await fetch(`${server.url}/chat/completions`, { method: 'POST', body });
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(message)]);
  });

  it('reports its calls, to callers and over HTTP', async () => {
    const { server } = await start({ rules: [{ name: 'greeting', match: 'hello', reply: 'hi there' }] });
    await (await post(server.url, user('hello'))).text();
    await post(server.url, user('nobody')).then((response) => response.text());
    const expected = [
      { number: 1, rule: 'greeting', answered: 'fully', status: 200, inputTokens: 2, outputTokens: 2, about: 'hello' },
      { number: 2, rule: null, answered: 'fully', status: 404 },
    ];
    expect(server.calls()).toMatchObject(expected);
    const listed = await fetch(server.url.replace('/v1', '/scripted/calls'));
    expect(await listed.json()).toMatchObject({ total: 2, calls: expected });
  });
});

function post(url: string, body: object): Promise<Response> {
  return fetch(`${url}/chat/completions`, { method: 'POST', body: JSON.stringify(body) });
}
