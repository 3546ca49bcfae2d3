import { EventEmitter } from 'node:events';
import { ERROR_KINDS, type ErrorCode, EtudeError } from '@etude/contracts/errors';
import type { ServerCall } from '@etude/contracts/grpc';
import { decodeStatus } from '@etude/contracts/rich-status';
import { status } from '@grpc/grpc-js';
import { type ArgumentsHost, HttpException } from '@nestjs/common';
import type { PinoLogger } from 'nestjs-pino';
import { firstValueFrom, materialize } from 'rxjs';
import { expect, it } from 'vitest';
import { openContext } from './call-context.js';
import { StatusFilter, type StatusError } from './status.filter.js';

interface Line {
  readonly errorId?: string;
  readonly err?: unknown;
}

async function answerTo(
  error: unknown,
  call: object = { getPath: () => '/etude.v1.Tasks/GetTask' },
): Promise<{ sent: StatusError; logged: readonly Line[] }> {
  const logged: Line[] = [];
  const log = (line: Line) => void logged.push(line);
  const filter = new StatusFilter({ error: log, warn: log } as unknown as PinoLogger);
  const host = { getArgs: () => [{}, {}, call] } as unknown as ArgumentsHost;
  const handle = filter.catch.bind(filter);
  const thrown = await firstValueFrom(handle(error, host).pipe(materialize()));
  return { sent: thrown.error as StatusError, logged };
}

it.each(Object.keys(ERROR_KINDS).filter((code) => code !== 'INTERNAL') as ErrorCode[])(
  'sends %s with its status, code and message',
  async (code) => {
    const { sent } = await answerTo(new EtudeError(code, 'what to do'));
    expect(sent).toMatchObject({ code: ERROR_KINDS[code].grpc, details: 'what to do' });
    expect(decodeStatus(sent.metadata)?.code).toBe(code);
  },
);

it.each([new Error('secret detail'), new HttpException('secret detail', 404), 'secret detail', undefined])(
  'hides what has no code behind an id: %s',
  async (error) => {
    const { sent, logged } = await answerTo(error);
    expect(sent.code).toBe(status.INTERNAL);
    expect(sent.details).not.toContain('secret');
    expect(logged).toHaveLength(1);
    expect(sent.details).toContain(logged[0]?.errorId);
    expect(decodeStatus(sent.metadata)?.metadata).toEqual({ id: logged[0]?.errorId });
  },
);

it('goes by the code of an error from another process', async () => {
  const { sent } = await answerTo({ code: 'MEMORY_FULL', message: 'no space left; free some' });
  expect(sent).toMatchObject({ code: status.RESOURCE_EXHAUSTED, details: 'no space left; free some' });
});

it('says nothing in the log about what callers do wrong', async () => {
  expect((await answerTo(new EtudeError('NOT_FOUND', 'no'))).logged).toEqual([]);
});

it('says why a call was stopped, not that something was aborted', async () => {
  const call = Object.assign(new EventEmitter(), { getDeadline: () => Infinity, cancelled: false }) as unknown as ServerCall;
  const shutdown = new AbortController();
  const { signal } = openContext(call, { tenant: 'acme', roles: ['user'], name: 'acme' }, shutdown.signal);
  shutdown.abort(new EtudeError('SHUTTING_DOWN', 'call again'));
  expect(signal.aborted).toBe(true);
  const aborted = Object.assign(new Error('This operation was aborted'), { name: 'AbortError' });
  expect((await answerTo(aborted, call)).sent).toMatchObject({ code: status.UNAVAILABLE, details: 'call again' });
  expect((await answerTo(aborted)).sent.code).toBe(status.INTERNAL);
});
