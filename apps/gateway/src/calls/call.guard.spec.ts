import { EventEmitter } from 'node:events';
import { create } from '@bufbuild/protobuf';
import { GetTaskRequestSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { ServerCall } from '@etude/contracts/grpc';
import { Metadata } from '@grpc/grpc-js';
import type { ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { expect, it } from 'vitest';
import { Drain } from '../server/drain.js';
import { Authenticator } from './authenticator.js';
import { contextOf } from './call-context.js';
import { CallGuard } from './call.guard.js';

class QuietCall extends EventEmitter {
  readonly metadata = new Metadata();
  cancelled = false;
  constructor(private readonly deadline: number) {
    super();
  }
  getDeadline = () => this.deadline;
}

const drain = new Drain();
const guard = new CallGuard(new Authenticator(null, 'local'), drain, new Reflector());
const enter = (call: QuietCall) =>
  guard.canActivate({
    getArgs: () => [create(GetTaskRequestSchema), {}, call],
    getHandler: () => enter,
    getClass: () => QuietCall,
  } as unknown as ExecutionContext);
const contextFor = (call: QuietCall) => contextOf(call as unknown as ServerCall);

it('begins no work whose deadline is over', () => {
  expect(() => enter(new QuietCall(Date.now() - 1))).toThrow(expect.objectContaining({ code: 'DEADLINE_EXCEEDED' }) as Error);
});

it('begins no work for a caller who is gone', () => {
  const call = new QuietCall(Infinity);
  call.cancelled = true;
  expect(() => enter(call)).toThrow(expect.objectContaining({ code: 'CANCELLED' }) as Error);
});

it('tells a handler when its caller is gone', () => {
  const call = new QuietCall(Infinity);
  enter(call);
  call.emit('cancelled');
  expect(contextFor(call).signal.reason).toMatchObject({ code: 'CANCELLED' });
});

it('tells a handler when the process shuts down', () => {
  const call = new QuietCall(Infinity);
  enter(call);
  drain.begin();
  expect(contextFor(call).signal.reason).toMatchObject({ code: 'SHUTTING_DOWN' });
});

it('knows no tenant for a call that did not pass', () => {
  expect(() => contextFor(new QuietCall(Infinity))).toThrow(expect.objectContaining({ code: 'TENANT_MISSING' }) as Error);
});
