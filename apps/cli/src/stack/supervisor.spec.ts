import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { testFolder } from '@etude/test-support/test-folder';
import { expect, it, onTestFinished } from 'vitest';
import { choosePorts } from './programs.js';
import { modelUrl, onFreePorts } from './supervisor.js';

/** A start function that fails with these messages, one per call, and then succeeds. */
function startsThatSay(...words: string[]) {
  const [left, log] = [[...words], [] as string[]];
  const start = async () => {
    log.push('start');
    const said = left.shift();
    if (said !== undefined) throw new Error(said);
  };
  const clear = async () => void log.push('clear');
  return { log, done: onFreePorts(start, clear) };
}

it.each([
  'redis ended with 1 before it was ready. The end of redis.log:\nWarning: Could not create server TCP listening socket 127.0.0.1:6379: bind: Address already in use',
  'model ended with 2 before it was ready. The end of model.log:\nlisten EADDRINUSE: address already in use 127.0.0.1:34099',
  'gateway ended with 1 before it was ready. The end of gateway.log:\n{"message":"Port 50051 on 127.0.0.1 is taken by another process. Stop what uses it"}',
  'qdrant ended with 101 before it was ready. The end of qdrant.log:\nError: Address already in use (os error 98)',
])('starts again if a port was taken: %s', async (words) => {
  const { log, done } = startsThatSay(words, words);
  await done;
  expect(log).toEqual(['start', 'clear', 'start', 'clear', 'start']);
});

it('does not start again after another failure', async () => {
  const { log, done } = startsThatSay('gateway ended with 1 before it was ready. Settings are wrong');
  await expect(done).rejects.toThrow('Settings are wrong');
  expect(log).toEqual(['start']);
});

it.each([
  [undefined, 'https://api.openai.com/v1'],
  ['', 'https://api.openai.com/v1'],
  ['http://localhost:11434/v1/', 'http://localhost:11434/v1'],
  ['https://me:secret@models.example/v1?key=secret#secret', 'https://models.example/v1'],
  ['nonsense', null],
])('shows %s without credentials', (OPENAI_BASE_URL, shown) => {
  expect(modelUrl({ OPENAI_BASE_URL })).toBe(shown);
});

it('chooses the ports of the last start if the preferred ones are taken', async () => {
  const home = testFolder();
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  onTestFinished(() => void taken.close());
  const preferred = { grpc: (taken.address() as AddressInfo).port };
  const first = await choosePorts(preferred, home);
  expect(first.grpc).not.toBe(preferred.grpc);
  expect(await choosePorts(preferred, home)).toEqual(first);
  writeFileSync(join(home, 'ports.json'), '{"grpc": "damaged');
  expect((await choosePorts(preferred, home)).grpc).not.toBe(preferred.grpc);
});
