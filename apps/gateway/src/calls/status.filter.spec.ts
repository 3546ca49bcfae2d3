import { ERROR_KINDS, type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { decodeStatus } from '@etude/contracts/rich-status';
import { status } from '@grpc/grpc-js';
import { type ArgumentsHost, HttpException } from '@nestjs/common';
import type { PinoLogger } from 'nestjs-pino';
import { firstValueFrom, materialize } from 'rxjs';
import { expect, it } from 'vitest';
import { StatusFilter, type StatusError } from './status.filter.js';

interface Line {
  readonly errorId?: string;
  readonly err?: unknown;
}

async function answerTo(error: unknown): Promise<{ sent: StatusError; logged: readonly Line[] }> {
  const logged: Line[] = [];
  const log = (line: Line) => void logged.push(line);
  const filter = new StatusFilter({ error: log, warn: log } as unknown as PinoLogger);
  const host = { getArgs: () => [{}, {}, { getPath: () => '/etude.v1.Tasks/GetTask' }] } as unknown as ArgumentsHost;
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
