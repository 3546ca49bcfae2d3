import { EventEmitter } from 'node:events';
import type { ServerCall } from '@etude/contracts/grpc';
import { Metadata } from '@grpc/grpc-js';
import type { ExecutionContext } from '@nestjs/common';
import { firstValueFrom, from, type Observable } from 'rxjs';
import { expect, it } from 'vitest';
import { openContext } from './call-context.js';
import { TenantCallsInterceptor, WaitsOnly } from './tenant-calls.interceptor.js';

class Handlers {
  works(this: void): void {}
  @WaitsOnly()
  waits(this: void): void {}
}

const { works, waits } = Handlers.prototype;

const LIST = '/etude.v1.Tasks/ListTasks';
const WATCH = '/etude.v1.Tasks/WatchTask';

function callOf(tenant: string, path = LIST): ServerCall {
  const call = Object.assign(new EventEmitter(), {
    metadata: new Metadata(),
    cancelled: false,
    getDeadline: () => Infinity,
    getPath: () => path,
  });
  openContext(call as unknown as ServerCall, { tenant, roles: ['user'], name: tenant }, new AbortController().signal);
  return call as unknown as ServerCall;
}

/** A gate for two calls of a tenant, with work that ends when it is told to. */
function gate() {
  const interceptor = new TenantCallsInterceptor(2);
  const ends: Array<() => void> = [];
  const handle = (): Observable<unknown> => from(new Promise((resolve) => ends.push(() => resolve('done'))));
  const begin = (call: ServerCall, handler: () => void = works): Promise<unknown> => {
    const context = { getArgs: () => [{}, {}, call], getHandler: () => handler, getClass: () => Handlers } as unknown as ExecutionContext;
    return firstValueFrom(interceptor.intercept(context, { handle }));
  };
  return { begin, ends };
}

const refused = { code: 'TOO_MANY_CALLS', details: { retryAfterMs: 1_000 } };

it('takes no more calls of a tenant than are allowed, and others of other tenants', async () => {
  const { begin, ends } = gate();
  const taken = [begin(callOf('acme')), begin(callOf('acme'))];
  await expect(begin(callOf('acme'))).rejects.toMatchObject(refused);
  taken.push(begin(callOf('other')));
  ends.forEach((end) => end());
  expect(await Promise.all(taken)).toEqual(['done', 'done', 'done']);
});

it('takes calls again when one is answered, and counts one whose caller has left until its work is over', async () => {
  const { begin, ends } = gate();
  const left = callOf('acme');
  const taken = [begin(left), begin(callOf('acme'))];
  (left as unknown as EventEmitter).emit('cancelled');
  await expect(begin(callOf('acme'))).rejects.toMatchObject(refused);
  ends[0]?.();
  await taken[0];
  const later = begin(callOf('acme'));
  ends.forEach((end) => end());
  expect(await later).toBe('done');
});

it('counts no streams and no calls that only wait', async () => {
  const { begin, ends } = gate();
  const taken = [
    ...Array.from({ length: 3 }, () => begin(callOf('acme', WATCH))),
    ...Array.from({ length: 3 }, () => begin(callOf('acme'), waits)),
    begin(callOf('acme')),
  ];
  ends.forEach((end) => end());
  expect(new Set(await Promise.all(taken))).toEqual(new Set(['done']));
});
