import { EtudeError } from '@etude/contracts/errors';
import { status } from '@grpc/grpc-js';
import { expect, it, vi } from 'vitest';
import { serviceError } from '../../test/service-error.js';
import { createCli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { readSettings } from '../settings.js';
import { type SubmitOptions, submitTask, submitWithRetry } from './submit-task.js';

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

it.each([
  ['is away', serviceError(status.UNAVAILABLE, 'read ECONNRESET')],
  ['works on too many calls', serviceError(status.RESOURCE_EXHAUSTED, 'busy', new EtudeError('TOO_MANY_CALLS', 'busy'))],
])('submits again where the gateway %s for a moment', async (_how, error) => {
  const tasks = { submitTask: vi.fn().mockRejectedValueOnce(error).mockResolvedValue({ name: 'tasks/t1' }) };
  const gateway = { tasks } as unknown as Gateway;
  expect(await submitWithRetry(gateway, { requestId: 'r' }, { signal: cli.signal, timeoutMs: 60_000 })).toEqual({ name: 'tasks/t1' });
  expect(tasks.submitTask).toHaveBeenCalledTimes(2);
});
