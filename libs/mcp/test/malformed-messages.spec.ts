import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '@etude/test-support/until';
import { FakeGateway } from '../src/testing/fake-gateway.js';
import { serveOverStdio } from '../src/stdio.js';

interface Answer {
  readonly id: unknown;
  readonly error?: { readonly code: number; readonly message: string };
  readonly result?: unknown;
}

const closing: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A server that is written lines, and what it wrote. */
function served() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const gateway = new FakeGateway();
  const errors: string[] = [];
  const over = serveOverStdio(
    gateway,
    { agent: 'default', user: '', session: 'one', metadata: {} },
    {
      version: '1.2.3',
      onUnfit: () => undefined,
      onError: ({ message }) => errors.push(message),
      stdin,
      stdout,
      signal: new AbortController().signal,
    },
  );
  closing.push(() => (stdin.end(), over));
  let written = '';
  stdout.on('data', (chunk: Buffer) => void (written += chunk.toString()));
  const answers = () =>
    written
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Answer);
  const nth = async (count: number) => (await until(() => answers().length >= count), answers()[count - 1]);
  return { stdin, gateway, errors, answers, nth, over };
}

const HANDSHAKE = JSON.stringify({
  jsonrpc: '2.0',
  id: 'first',
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
});
const CALL = (args: string, id = '7') => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":${args}}}`;

describe('a malformed message over stdio', () => {
  it('ends the connection where a line is longer than the limit', async () => {
    const { stdin, errors, over } = served();
    stdin.write('x'.repeat(10 * 1024 * 1024 + 1));
    await over;
    expect(errors).toEqual([expect.stringContaining('at most 10485760 characters')]);
  });

  it.each([
    ['no JSON', '{"jsonrpc":"2.0","id":1', -32_700, null],
    ['words', 'hello', -32_700, null],
    ['no method', '{"jsonrpc":"2.0","id":5}', -32_600, 5],
    ['another version', '{"jsonrpc":"1.0","id":"a","method":"ping"}', -32_600, 'a'],
    ['parameters that are a list', '{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', -32_600, 3],
    ['an id that is none', '{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', -32_600, null],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32_600, null],
    ['a number', '12', -32_600, null],
    ['an id that is rounded', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', -32_602, null],
    ['an argument that is rounded', CALL('{"text":"x","n":9007199254740993}'), -32_602, 7],
    ['an argument that is no Unicode', CALL('{"text":"\\ud800"}'), -32_602, 7],
  ])('is answered with its id where it has %s, and the next one is served', async (_what, line, code, id) => {
    const { stdin, nth, errors, gateway } = served();
    stdin.write(`${HANDSHAKE}\n`);
    expect(await nth(1)).toMatchObject({ id: 'first', result: {} });
    stdin.write(`${line}\n`);
    const refused = await nth(2);
    expect(refused).toMatchObject({ jsonrpc: '2.0', id, error: { code } });
    expect(errors).toEqual([refused?.error?.message]);
    stdin.write(`${CALL('{"text":"x"}', '8')}\n`);
    expect(await nth(3)).toMatchObject({ id: 8, result: {} });
    expect(gateway.seen.filter(({ method }) => method === 'callTool')).toHaveLength(1);
  });

  it('gets no answer if it is an answer itself', async () => {
    const { stdin, nth, answers, errors } = served();
    stdin.write(`${HANDSHAKE}\n`);
    await nth(1);
    stdin.write('{"jsonrpc":"2.0","id":1,"result":5}\n');
    stdin.write(`${CALL('{"text":"x"}')}\n`);
    expect(await nth(2)).toMatchObject({ id: 7, result: {} });
    expect(answers()).toHaveLength(2);
    expect(errors).toHaveLength(1);
  });

  it('may come in pieces, and in the middle of a character', async () => {
    const { stdin, nth } = served();
    const bytes = Buffer.from(`${HANDSHAKE}\n${CALL('{"text":"ä😀"}')}\n`);
    for (const byte of bytes) stdin.write(Buffer.from([byte]));
    expect(await nth(2)).toMatchObject({ id: 7, result: { structuredContent: { text: 'ä😀' } } });
  });
});
