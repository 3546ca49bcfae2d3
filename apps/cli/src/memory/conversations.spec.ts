import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import { CliError, EXIT } from '../errors.js';
import { messagesIn } from './conversations.js';

const ONE = { role: 'user', name: 'Ann', text: 'Hello', time: '2026-05-03T09:00:00Z' };
const TWO = { role: 'assistant', content: 'Hi,\nAnn' };

it.each([
  ['a list', JSON.stringify([ONE, TWO])],
  ['an object with a list', JSON.stringify({ messages: [ONE, TWO] }, null, 2)],
  ['lines', `${JSON.stringify(ONE)}\n\n${JSON.stringify(TWO)}\n`],
])('reads messages from %s', (_how, text) => {
  expect(messagesIn(text, 'chat')).toMatchObject([
    { role: 'user', name: 'Ann', text: 'Hello', time: timestampFromMs(Date.UTC(2026, 4, 3, 9)) },
    { role: 'assistant', name: '', text: 'Hi,\nAnn' },
  ]);
});

it('reads a single message', () => {
  expect(messagesIn(JSON.stringify(ONE), 'chat')).toHaveLength(1);
});

it.each([
  ['no message', '[]', 'chat holds no message'],
  ['a wrong line', `${JSON.stringify(ONE)}\n{"role":`, 'chat, line 2 is not JSON'],
  ['an unknown field', JSON.stringify([ONE, { ...ONE, speaker: 'Ann' }]), 'chat, message 2'],
  ['a list as text', JSON.stringify([{ role: 'user', content: [] }]), 'chat, message 1'],
])('refuses %s, naming its place', (_what, text, said) => {
  let error: unknown;
  try {
    messagesIn(text, 'chat');
  } catch (caught) {
    error = caught;
  }
  expect(error).toBeInstanceOf(CliError);
  expect(error).toMatchObject({ exit: EXIT.usage, message: expect.stringContaining(said) as string });
});
