import { randomUUID } from 'node:crypto';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { ERROR_KINDS, type ErrorCode, errorCode, EtudeError, isAbort } from '@etude/contracts/errors';
import { type Handler, SERVICES } from '@etude/contracts/grpc';
import type { ServiceHandlers } from '@etude/contracts/grpc-server';
import { hasRole, type Identity } from '@etude/platform/auth';
import type { AuditLog } from '@etude/queue/audit/audit-log';
import { type SpanStart, type Tracing, UNTRACED } from '@etude/contracts/tracing';
import { counter, histogram } from '@etude/platform/metrics';
import { refuseUnknown } from '@etude/contracts/wire/validation';
import type { Authenticator, CallContext } from './caller.js';
import { bindToUser, ruleOf } from './roles.js';
import { AsyncLocalStorage } from 'node:async_hooks';

const calls = counter({ name: 'etude_grpc_calls_total', help: 'Finished calls by method and code', labels: ['method', 'code'] });
const seconds = histogram({ name: 'etude_grpc_call_seconds', help: 'How long calls took, streams included', labels: ['method'] });
const RETRY_AFTER_MS = 1_000;

export type Handlers<S extends DescService, D> = {
  readonly [K in keyof S['method']]?: Handler<S['method'][K], [call: CallContext, deps: D]>;
};

/** A call as it arrives by gRPC, REST or MCP. */
interface Arrival {
  readonly authorization: readonly (string | Buffer)[];
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
  readonly traceparent?: string | undefined;
}

type AnyHandler = (request: object, call: CallContext) => unknown;

interface CallsParts {
  readonly authenticator: Pick<Authenticator, 'identify' | 'watch'>;
  readonly shutdown: AbortSignal;
  /** Maximum of calls from one tenant that this process works on at once. */
  readonly perTenantMax: number;
  /** Called when a limit of the tenant refused its call. */
  readonly onRefused?: (tenant: string) => void;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
  readonly tracing?: Tracing;
  /** The audit log. If it can't be written before the work of an audited call, the call fails. */
  readonly audit?: Pick<AuditLog, 'write'>;
}

const nameOf = (method: DescMethod) => `/${method.parent.typeName}/${method.name}`;
/** Streams and waits don't count towards `perTenantMax`, because they are idle most of the time. */
const isCounted = (method: DescMethod) => method.methodKind !== 'server_streaming' && method !== SERVICES.tasks.method.waitTask;

/** The common path from gRPC, REST and MCP to the handlers: authentication, roles, deadlines, checks, limits, metrics and errors. */
export class Calls {
  readonly #served = new Map<DescMethod, AnyHandler>();
  readonly #working = new Map<string, number>();

  constructor(private readonly parts: CallsParts) {}

  serve<S extends DescService, D>(service: S, handlers: Handlers<S, D>, deps: D): void {
    for (const method of service.methods) {
      const handle = (handlers as Readonly<Record<string, (request: object, call: CallContext, deps: D) => unknown>>)[method.localName];
      if (handle !== undefined) this.#served.set(method, (request, call) => handle(request, call, deps));
    }
  }

  /** All handlers of a service, with checks, limits, metrics and errors. Pass them the result of `admit`. @throws Error if a handler is missing */
  handlersOf<S extends DescService>(service: S): ServiceHandlers<S, CallContext> {
    const handlers = service.methods.map((method) => [method.localName, this.#surrounded(method)]);
    return Object.fromEntries(handlers) as ServiceHandlers<S, CallContext>;
  }

  /** @throws EtudeError UNAUTHENTICATED, PERMISSION_DENIED, CANCELLED, DEADLINE_EXCEEDED */
  async admit(method: DescMethod, { authorization, signal, deadlineMs, traceparent }: Arrival): Promise<CallContext> {
    const identity = await this.parts.authenticator.identify(authorization);
    const { role } = ruleOf(method);
    if (!hasRole(identity.roles, role)) {
      await this.#audit(method, identity, '', 'PERMISSION_DENIED');
      const message = `This call needs a key with the role "${role}". Yours has: ${identity.roles.join(', ') || 'none'}.`;
      throw new EtudeError('PERMISSION_DENIED', message);
    }
    signal.throwIfAborted();
    if (deadlineMs <= Date.now())
      throw new EtudeError('DEADLINE_EXCEEDED', 'The deadline of this call passed before work began. Set a later deadline.');
    const over = new AbortController();
    const watchKey = () => this.parts.authenticator.watch(authorization, (error) => over.abort(error));
    const call = { ...identity, deadlineMs, watchKey, signal: AbortSignal.any([signal, this.parts.shutdown, over.signal]) };
    return traceparent === undefined ? call : { ...call, traceparent };
  }

  #surrounded(method: DescMethod): AnyHandler {
    const handle = this.#served.get(method);
    if (handle === undefined) throw new Error(`${method.parent.typeName}.${method.name} has no handler`);
    const isUpload = method.methodKind === 'client_streaming';
    const checked = (request: object, call: CallContext) => bindToUser(refuseUnknown(request), call, ruleOf(method));
    const answers = (request: object, call: CallContext) =>
      this.#answers(method, call, request, () => {
        const check = (one: object) => checked(one, call);
        return handle(isUpload ? eachOf(request as AsyncIterable<object>, check) : check(request), call);
      });
    const { tracing = UNTRACED } = this.parts;
    const name = nameOf(method).slice(1);
    if (method.methodKind === 'server_streaming')
      return (request, call) => streamSpan(tracing, name, spanOf(method, call), () => answers(request, call));
    return (request, call) => tracing.span(name, spanOf(method, call), async () => (await Array.fromAsync(answers(request, call)))[0]);
  }

  /** Yields one answer, or the answers of a stream. If the caller leaves early, a stream ends without an error. */
  async *#answers(method: DescMethod, call: CallContext, request: object, work: () => unknown): AsyncGenerator<object> {
    const stop = seconds.startTimer({ method: nameOf(method) });
    let code: ErrorCode | 'OK' = 'CANCELLED';
    let isTaken = false;
    let target = targetOf(request);
    let begun: string | undefined;
    const unwatch = isCounted(method) ? undefined : call.watchKey?.();
    try {
      if (isCounted(method)) this.#take(call.tenant);
      isTaken = isCounted(method);
      begun = await this.#begin(method, call, target);
      if (method.methodKind === 'server_streaming') {
        for await (const answer of work() as AsyncIterable<object>) {
          call.signal.throwIfAborted();
          yield answer;
        }
        call.signal.throwIfAborted();
      } else {
        const answer = (await work()) as object;
        target ||= targetOf(answer);
        yield answer;
      }
      code = 'OK';
    } catch (error) {
      const told = this.#told(error, method, call);
      ({ code } = told);
      if (told.details.metadata?.['limit'] !== undefined) this.parts.onRefused?.(call.tenant);
      throw told;
    } finally {
      unwatch?.();
      if (begun !== undefined) await this.#audit(method, call, target, code, begun);
      if (isTaken) this.#giveBack(call.tenant);
      stop();
      calls.inc({ method: nameOf(method), code });
    }
  }

  /**
   * The error for the caller. An error with a code keeps code and message. An abort error is replaced by the reason of the abort.
   * Any other error is a bug: it is logged under an id, and the caller gets only the id.
   */
  #told(thrown: unknown, method: DescMethod, { signal }: CallContext): EtudeError {
    const error: unknown = isAbort(thrown) && signal.aborted ? signal.reason : thrown;
    const code = errorCode(error);
    if (code !== 'INTERNAL') {
      const { message, details } = error as EtudeError;
      if (ERROR_KINDS[code].fault === 'system')
        this.parts.log.warn({ method: nameOf(method), errorCode: code, reason: message }, 'Call failed');
      // The error may come from another process or another copy of the class, so `instanceof` would miss it.
      return new EtudeError(code, message, details ?? {}, { cause: error });
    }
    const id = randomUUID();
    this.parts.log.error({ method: nameOf(method), errorId: id, err: error }, 'Call failed with an error that has no code');
    const message = `The gateway failed. Send this id to the operator, who finds the error by it in the log: ${id}.`;
    return new EtudeError('INTERNAL', message, { metadata: { id } });
  }

  /** Notes an audited call before its work, so that a gateway that is killed can't hide a change. @throws EtudeError QUEUE_UNAVAILABLE */
  async #begin(method: DescMethod, call: CallContext, target: string): Promise<string | undefined> {
    const { audit } = this.parts;
    return ruleOf(method).audited ? audit?.write(call.tenant, entryOf(method, call, target, 'UNKNOWN')) : undefined;
  }

  async #audit(method: DescMethod, caller: Identity, target: string, outcome: ErrorCode | 'OK', begun = ''): Promise<void> {
    const { audit, log } = this.parts;
    if (audit === undefined || !ruleOf(method).audited) return;
    const [{ tenant }, entry] = [caller, entryOf(method, caller, target, outcome)];
    // The work is already done, so the call must not fail because of the log.
    await audit
      .write(tenant, isNoted(outcome) ? entry : null, begun)
      .catch((error: unknown) => log.error({ tenant, ...entry, err: error }, 'The audit log could not be written'));
  }

  /** Counts a call until its work ends, even if its caller has left. So a tenant can't overload this process by cancelling many calls. */
  #take(tenant: string): void {
    const working = this.#working.get(tenant) ?? 0;
    if (working < this.parts.perTenantMax) return void this.#working.set(tenant, working + 1);
    const message = `This gateway already works on ${working} calls of your tenant, which is the maximum. Call again later, with fewer calls at once.`;
    throw new EtudeError('TOO_MANY_CALLS', message, { retryAfterMs: RETRY_AFTER_MS, metadata: { limit: 'calls' } });
  }

  #giveBack(tenant: string): void {
    const left = (this.#working.get(tenant) ?? 1) - 1;
    if (left === 0) this.#working.delete(tenant);
    else this.#working.set(tenant, left);
  }
}

const entryOf = (method: DescMethod, { name: actor, roles }: Identity, target: string, outcome: string) => ({
  actor,
  roles,
  call: nameOf(method).slice(1),
  target,
  outcome,
});

/** Whether the audit log keeps a call with this outcome: it succeeded, was refused, or may have changed something before it failed. */
const isNoted = (code: ErrorCode | 'OK') =>
  code === 'OK' ||
  code === 'PERMISSION_DENIED' ||
  code === 'CANCELLED' ||
  code === 'DEADLINE_EXCEEDED' ||
  ERROR_KINDS[code].fault === 'system';

/** The name or id that a request or an answer is about; '' if it has none. */
function targetOf(message: object): string {
  const { name, id, queue, source, pruneId, skill, agent, document, whose } = message as Record<string, unknown>;
  const inner = [skill, agent, document].map((one) => (one as { name?: string } | undefined)?.name);
  const erased = whose as { case?: string; value?: string } | undefined;
  const found = [name, id, ...inner, queue, source, pruneId, erased?.case && `${erased.case} ${erased.value}`];
  return found.find((one): one is string => typeof one === 'string' && one !== '') ?? '';
}

const spanOf = (method: DescMethod, { tenant, traceparent: parent }: CallContext): SpanStart => ({
  kind: 'server',
  ...(parent === undefined ? {} : { parent }),
  values: { 'rpc.system.name': 'grpc', 'rpc.method': nameOf(method).slice(1), 'etude.tenant': tenant },
});

export async function* eachOf(requests: AsyncIterable<object>, change: (request: object) => object): AsyncGenerator<object> {
  for await (const request of requests) yield change(request);
}

export const MIB = 1024 * 1024;

const BYTES_MAX: Readonly<Record<string, number>> = {
  SubmitTask: 16 * MIB,
  StoreProcedure: 4 * MIB,
  ImportDocument: 2 * MIB,
  ImportMemory: 16 * MIB,
  AddConversation: 16 * MIB,
  RegisterSkill: 4 * MIB,
  CheckSkill: 4 * MIB,
  // The size of one chunk of an archive.
  ImportSkill: 16 * MIB,
};
const { memory, skills, agents, tools, worlds } = SERVICES;
const LIMITED: ReadonlySet<DescService> = new Set([memory, skills, agents, tools, worlds]);

export const bytesMaxOf = ({ name }: DescMethod) => BYTES_MAX[name] ?? MIB;

/** @throws EtudeError PAYLOAD_TOO_LARGE */
export function requireSize(method: DescMethod, { byteLength }: Uint8Array): void {
  const bytesMax = bytesMaxOf(method);
  if (!LIMITED.has(method.parent) || byteLength <= bytesMax) return;
  const message = `A request of ${method.name} may have at most ${bytesMax} bytes; yours has ${byteLength}. Send less at once.`;
  throw new EtudeError('PAYLOAD_TOO_LARGE', message);
}

/** Traces a stream as one span. It is the current span while an answer is made, but not while the reader uses the answer. */
export async function* streamSpan<T>(
  tracing: Tracing,
  name: string,
  start: SpanStart,
  answers: () => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const over = Promise.withResolvers<void>();
  let inSpan = AsyncLocalStorage.snapshot();
  const span = tracing.span(name, start, () => {
    inSpan = AsyncLocalStorage.snapshot();
    return over.promise;
  });
  const source = inSpan(answers);
  try {
    for (let next = await inSpan(() => source.next()); !next.done; next = await inSpan(() => source.next())) yield next.value;
  } catch (error) {
    over.reject(error);
    throw error;
  } finally {
    await inSpan(() => source.return(undefined));
    over.resolve();
    await span.catch(() => undefined);
  }
}
