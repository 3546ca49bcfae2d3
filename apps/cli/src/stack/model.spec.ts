import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePort } from '@etude/test-support/ports';
import { expect, it, onTestFinished, vi } from 'vitest';
import { readSettings } from '../cli.js';
import { modelTrouble, modelUrl } from './model.js';

it.each([
  [undefined, 'https://api.openai.com/v1'],
  ['', 'https://api.openai.com/v1'],
  ['http://localhost:11434/v1/', 'http://localhost:11434/v1'],
  ['https://me:secret@models.example/v1?key=secret#secret', 'https://models.example/v1'],
  ['nonsense', null],
])('shows %s without what may be a key', (OPENAI_BASE_URL, shown) => {
  expect(modelUrl({ OPENAI_BASE_URL })).toBe(shown);
});

const never = new AbortController().signal;
const trouble = (environment: Record<string, string>, signal = never) => modelTrouble(readSettings(environment), signal);

/** A server that answers with one status, and what it was asked. */
async function serverWith(status: number): Promise<{ base: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer(({ url, headers }, response) => {
    asked.push(`${url} ${headers.authorization ?? ''}`);
    response.writeHead(status).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked };
}

it.each([200, 404, 500])('a model server that answers %i is there', async (status) => {
  const { base, asked } = await serverWith(status);
  expect(await trouble({ OPENAI_BASE_URL: `${base}/`, OPENAI_API_KEY: 'k' })).toBeNull();
  expect(asked).toEqual(['/v1/models Bearer k']);
});

it('a model server that is not there is named, with what to do', async () => {
  const base = `http://127.0.0.1:${await freePort()}/v1`;
  const said = await trouble({ OPENAI_BASE_URL: base });
  expect(said).toContain(`the model server at ${base} can't be reached (ECONNREFUSED): start it, and the next task finds it`);
  expect(said).toContain('set OPENAI_BASE_URL');
  expect(await trouble({ OPENAI_BASE_URL: base.replace('127', 'me:secret@127') })).toBe(said);
});

it('a key that is refused is told', async () => {
  const { base, asked } = await serverWith(401);
  expect(await trouble({ OPENAI_BASE_URL: base })).toMatch(/refuses the key \(HTTP 401\): set OPENAI_API_KEY/);
  expect(asked).toEqual(['/v1/models ']);
});

it('says nothing of a server that is slow or behind a proxy, nor when it is interrupted', async () => {
  const base = `http://127.0.0.1:${await freePort()}/v1`;
  expect(await trouble({ OPENAI_BASE_URL: base, ETUDE_MODEL_PROXY_URL: 'http://127.0.0.1:1' })).toBeNull();
  expect(await trouble({ OPENAI_BASE_URL: base }, AbortSignal.abort())).toBeNull();
  vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(AbortSignal.abort(new DOMException('too slow', 'TimeoutError')));
  expect(await trouble({ OPENAI_BASE_URL: base })).toBeNull();
});
