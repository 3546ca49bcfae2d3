import type { ChatRequest } from '@etude/domain/ports/model';
import { describe, expect, it, onTestFinished } from 'vitest';
import { chatModel, json, never, rawServer, whole } from '../test/raw-server.js';
import { startScriptedModel } from './scripted-server.js';

const TOOLS = [
  { name: 'fs_read', description: 'Reads a file.', inputSchema: { type: 'object', properties: { path: { type: 'string' } } } },
];
const ASKED: ChatRequest = {
  tools: TOOLS,
  messages: [
    { role: 'system', content: 'You act.' },
    { role: 'user', content: 'Read a.txt.' },
    { role: 'assistant', content: '', toolCalls: [{ id: 'c1', name: 'fs_read', arguments: '{"path": "b.txt"}' }] },
    { role: 'tool', content: 'nothing', toolCallId: 'c1' },
  ],
};

const answered = (text: string) => json(whole(text, { finish_reason: 'stop' }));

const chunk = (calls: object[], finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: calls }, finish_reason: finish }] })}\n\n`;

const refuse = json({ error: { message: 'tools are not supported by this model' } }, 400);

describe('function calling', () => {
  it('reads the calls of a streamed answer', async () => {
    const calls = [{ name: 'fs_read', arguments: { path: 'a.txt' } }, { name: 'fs_list' }];
    const server = await startScriptedModel({ script: { default: { reply: 'I look.', tool_calls: calls } } });
    onTestFinished(() => server.close());
    expect(await chatModel(server.url).chat(ASKED, never())).toMatchObject({
      text: 'I look.',
      toolCalls: [
        { name: 'fs_read', arguments: '{"path":"a.txt"}' },
        { name: 'fs_list', arguments: '{}' },
      ],
    });
  });

  it('joins calls that arrive in pieces, with and without an id', async () => {
    const { url } = await rawServer((response) =>
      response.end(
        chunk([{ index: 0, id: 'x', function: { name: 'fs_read', arguments: '{"pa' } }]) +
          chunk(
            [
              { index: 0, function: { arguments: 'th": "a"}' } },
              { index: 1, function: { name: 'fs_list' } },
            ],
            'tool_calls',
          ) +
          'data: [DONE]\n\n',
      ),
    );
    expect((await chatModel(url).chat(ASKED, never())).toolCalls).toEqual([
      { id: 'x', name: 'fs_read', arguments: '{"path": "a"}' },
      { id: 'call_2', name: 'fs_list', arguments: '{}' },
    ]);
  });

  it('describes tools as text for a server that refuses them, and remembers that', async () => {
    const call = 'I read it.\n\n```tool\n{"name": "fs_read", "arguments": {"path": "a.txt"}}\n```\n';
    const { url, requests } = await rawServer(refuse, answered(call));
    const model = chatModel(url);
    const expected = { text: 'I read it.', toolCalls: [{ name: 'fs_read', arguments: '{"path":"a.txt"}' }] };
    expect(await model.chat(ASKED, never())).toMatchObject(expected);
    expect(await model.chat(ASKED, never())).toMatchObject(expected);
    expect(requests.map(({ body }) => 'tools' in body)).toEqual([true, false, false]);
    const messages = requests.at(1)?.body['messages'] as Array<{ role: string; content: string }>;
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
    expect(messages.at(0)?.content).toContain('- fs_read: Reads a file.');
    expect(messages.at(2)?.content).toContain('```tool\n{"name": "fs_read"');
  });

  it('describes tools as text only once for a server that refuses the schema of one', async () => {
    const { url, requests } = await rawServer(
      json({ error: { message: "Invalid schema for function 'a__b'." } }, 400),
      answered('one'),
      answered('two'),
    );
    const model = chatModel(url);
    for (const text of ['one', 'two']) expect(await model.chat(ASKED, never())).toMatchObject({ text });
    expect(requests.map(({ body }) => 'tools' in body)).toEqual([true, false, true]);
  });

  it('repeats a wrong call of the model so that servers accept it', async () => {
    const { url, requests } = await rawServer(answered('done'));
    const wrong = { role: 'assistant', content: '', toolCalls: [{ id: 'c', name: 'fs read!', arguments: '{"path": "b.t' }] } as const;
    await chatModel(url).chat(
      { ...ASKED, messages: [...ASKED.messages, wrong, { role: 'tool', content: 'no', toolCallId: 'c' }] },
      never(),
    );
    const messages = requests.at(0)?.body['messages'] as ReadonlyArray<{ tool_calls?: unknown }>;
    expect(messages.at(-2)?.tool_calls).toMatchObject([{ function: { name: 'fs_read_', arguments: '{}' } }]);
  });

  it('leaves a block that is no call in the text', async () => {
    const text = '```tool\nnot JSON\n```';
    const { url } = await rawServer(json({ detail: 'unknown field tools' }, 422), answered(text));
    expect(await chatModel(url).chat(ASKED, never())).toMatchObject({ text });
  });
});
