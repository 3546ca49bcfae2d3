import { EtudeError } from '@etude/contracts/errors';
import type { ServerCall } from '@etude/contracts/grpc';
import { SERVICES } from '@etude/contracts/grpc-services';
import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { defer, finalize, type Observable } from 'rxjs';
import { contextOf } from './call-context.js';

const WAITS = 'etude:waits';
const RETRY_AFTER_MS = 1_000;

/** For a call that waits for what others do: however many there are, they hold nobody up. */
export const WaitsOnly = () => SetMetadata(WAITS, true);

/** Paths of methods that answer with a stream. */
const STREAMS = new Set(
  SERVICES.flatMap(({ typeName, methods }) =>
    methods.filter(({ methodKind }) => methodKind === 'server_streaming').map(({ name }) => `/${typeName}/${name}`),
  ),
);

/**
 * How many calls of one tenant are worked on at once in this process; a call counts until its work is over, also where its caller has
 * left. Without it, who calls and cancels by the thousand has everybody else wait. Streams are paced by their readers.
 */
@Injectable()
export class TenantCallsInterceptor implements NestInterceptor {
  readonly #working = new Map<string, number>();
  readonly #reflector = new Reflector();

  constructor(private readonly max: number) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const call = context.getArgs<[object, unknown, ServerCall]>()[2];
    const waits = this.#reflector.getAllAndOverride<boolean | undefined>(WAITS, [context.getHandler(), context.getClass()]) ?? false;
    if (waits || STREAMS.has(call.getPath())) return next.handle();
    const { tenant } = contextOf(call);
    return defer(() => {
      this.#take(tenant);
      return next.handle().pipe(finalize(() => this.#giveBack(tenant)));
    });
  }

  #take(tenant: string): void {
    const working = this.#working.get(tenant) ?? 0;
    if (working >= this.max)
      throw new EtudeError(
        'TOO_MANY_CALLS',
        `${working} calls of your tenant are being worked on here, and no more are taken until one is answered; call again later, with fewer at once.`,
        { retryAfterMs: RETRY_AFTER_MS },
      );
    this.#working.set(tenant, working + 1);
  }

  #giveBack(tenant: string): void {
    const left = (this.#working.get(tenant) ?? 1) - 1;
    if (left === 0) this.#working.delete(tenant);
    else this.#working.set(tenant, left);
  }
}
