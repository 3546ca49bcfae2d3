import { expect, it } from 'vitest';
import { createCli, readSettings } from '../cli.js';
import { EXIT } from '../errors.js';
import { type SubmitOptions, submitTask } from './tasks.command.js';

const cli = createCli(readSettings({}), { timeout: 30, address: '127.0.0.1:1' }, new AbortController().signal);

it.each<[string, SubmitOptions, string[], string]>([
  ['no prompt', {}, [], 'the task has no prompt'],
  ['a blank prompt', { prompt: ' ' }, [], 'the task has no prompt'],
  ['a prompt without its flag', {}, ['what is this'], '"what is this" belongs to no flag'],
  ['a prompt without quotes', { prompt: 'what' }, ['is', 'this'], '"is this" belongs to no flag'],
])('names --prompt for %s, without a gateway', async (_what, options, words, message) => {
  const hint = [expect.stringContaining('--prompt')];
  await expect(submitTask(cli, options, words)).rejects.toMatchObject({ exit: EXIT.usage, message, hint });
});
