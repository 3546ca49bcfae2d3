import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { until } from '@etude/test-support/until';
import { FakeGateway } from './fake-gateway.js';
import { servePipe } from './served.js';

interface Answer {
  readonly id: unknown;
  readonly error?: { readonly code: number; readonly message: string };
  readonly result?: unknown;
}

/** A server over a pipe, with the answers and errors of the server. */
function served() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const gateway = new FakeGateway();
  const errors: string[] = [];
  const over = servePipe(gateway, { stdin, stdout, onError: ({ message }) => errors.push(message) });
  let written = '';
  stdout.on('data', (chunk: Buffer) => void (written += chunk.toString()));
  const answers = () =>
    written
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Answer);
  const nth = async (count: number) => (await until(() => answers().length >= count), answers()[count - 1]);
  return { stdin, gateway, errors, nth, over };
}

const HANDSHAKE = JSON.stringify({
  jsonrpc: '2.0',
  id: 'first',
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
});
const CALL = (args: string, id = '7') => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":${args}}}`;

describe('a message over stdio', () => {
  it('ends the connection if a line is longer than the limit', async () => {
    const { stdin, errors, over } = served();
    stdin.write('x'.repeat(10 * 1024 * 1024 + 1));
    await over;
    expect(errors).toEqual([expect.stringContaining('more than 10485760 characters')]);
  });

  it.each([
    ['incomplete JSON', '{"jsonrpc":"2.0","id":1'],
    ['plain text', 'hello'],
    ['no method', '{"jsonrpc":"2.0","id":5}'],
    ['another version', '{"jsonrpc":"1.0","id":"a","method":"ping"}'],
    ['parameters that are a list', '{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}'],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'],
  ])('is skipped: %s', async (_what, line) => {
    const { stdin, nth } = served();
    for (const one of [HANDSHAKE, line, CALL('{"text":"x"}', '8')]) stdin.write(`${one}\n`);
    expect(await nth(2)).toMatchObject({ id: 8, result: {} });
  });

  it.each([
    ['an id beyond 2^53', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', null],
    ['an argument beyond 2^53', CALL('{"text":"x","n":9007199254740993}'), 7],
    ['an argument with half of a surrogate pair', CALL('{"text":"\\ud800"}'), 7],
  ])('is answered with an error and its id instead of changed: %s', async (_what, line, id) => {
    const { stdin, nth, errors, gateway } = served();
    stdin.write(`${HANDSHAKE}\n`);
    await nth(1);
    stdin.write(`${line}\n`);
    const refused = await nth(2);
    expect(refused).toMatchObject({ jsonrpc: '2.0', id, error: { code: -32_602 } });
    expect(errors).toEqual([refused?.error?.message]);
    expect(gateway.seen).toEqual([]);
  });

  it('is read from chunks that split lines and characters', async () => {
    const { stdin, nth } = served();
    const bytes = Buffer.from(`${HANDSHAKE}\n${CALL('{"text":"ä😀"}')}\n`);
    for (const byte of bytes) stdin.write(Buffer.from([byte]));
    expect(await nth(2)).toMatchObject({ id: 7, result: { structuredContent: { text: 'ä😀' } } });
  });
});
