import { randomUUID } from 'node:crypto';
import type { DescMessage, DescMethod, DescService, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { ERROR_KINDS, errorCode, EtudeError, isAbort } from '@etude/contracts/errors';
import type { ServiceHandlers } from '@etude/contracts/grpc-server';
import { hasRole, type Role } from '@etude/platform/auth';
import { counter, histogram } from '@etude/platform/metrics';
import { refuseAny, unknownFields } from '../wire/validation.js';
import type { Authenticator, CallContext } from './caller.js';

const calls = counter({ name: 'etude_grpc_calls_total', help: 'Finished calls by method and code', labels: ['method', 'code'] });
const seconds = histogram({ name: 'etude_grpc_call_seconds', help: 'How long calls took, streams included', labels: ['method'] });
const RETRY_AFTER_MS = 1_000;

type Handler<M extends DescMethod, D> = M extends {
  methodKind: 'unary';
  input: infer I extends DescMessage;
  output: infer O extends DescMessage;
}
  ? (request: MessageShape<I>, call: CallContext, deps: D) => Promise<MessageInitShape<O>>
  : M extends { methodKind: 'server_streaming'; input: infer I extends DescMessage; output: infer O extends DescMessage }
    ? (request: MessageShape<I>, call: CallContext, deps: D) => AsyncIterable<MessageInitShape<O>>
    : M extends { methodKind: 'client_streaming'; input: infer I extends DescMessage; output: infer O extends DescMessage }
      ? (requests: AsyncIterable<MessageShape<I>>, call: CallContext, deps: D) => Promise<MessageInitShape<O>>
      : never;

/** Handlers of some methods of a service. `D` is what they work with. */
export type Handlers<S extends DescService, D> = { readonly [K in keyof S['method']]?: Handler<S['method'][K], D> };

/** Who may call, and how calls are counted. */
export interface CallPolicy<K extends PropertyKey> {
  /** The role that a key needs; default "user". */
  readonly role?: Role;
  /** Calls that wait for what others do: they don't count among the calls that are worked on. */
  readonly waits?: readonly K[];
}

/** A call as it arrives at one of the doors. */
export interface Arrival {
  /** Values of the metadata or header `authorization`. */
  readonly authorization: readonly (string | Buffer)[];
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
}

type AnyHandler = (request: object, call: CallContext) => unknown;

interface Served {
  readonly handle: AnyHandler;
  readonly role: Role;
  readonly isCounted: boolean;
}

export interface CallsParts {
  readonly authenticator: Pick<Authenticator, 'identify'>;
  /** Aborts when this process shuts down. */
  readonly shutdown: AbortSignal;
  /** Calls of one tenant that this process works on at once. */
  readonly perTenantMax: number;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
}

/** The one way from every door (gRPC, REST, MCP) to the handlers: authentication, roles, deadlines, checks, limits, metrics and errors. */
export class Calls {
  readonly #served = new Map<DescMethod, Served>();
  readonly #working = new Map<string, number>();

  constructor(private readonly parts: CallsParts) {}

  serve<S extends DescService, D>(service: S, handlers: Handlers<S, D>, deps: D, policy: CallPolicy<keyof S['method']> = {}): void {
    for (const method of service.methods) {
      const handle = (handlers as Readonly<Record<string, (request: object, call: CallContext, deps: D) => unknown>>)[method.localName];
      if (handle === undefined) continue;
      const waits = policy.waits?.includes(method.localName) ?? false;
      this.#served.set(method, {
        handle: (request, call) => handle(request, call, deps),
        role: policy.role ?? 'user',
        isCounted: !waits && method.methodKind !== 'server_streaming',
      });
    }
  }

  /** Every handler of a service, with all that surrounds it. Each takes what `admit` answered. @throws Error where one is missing */
  handlersOf<S extends DescService>(service: S): ServiceHandlers<S, CallContext> {
    return Object.fromEntries(service.methods.map((method) => [method.localName, this.#surrounded(method)])) as ServiceHandlers<
      S,
      CallContext
    >;
  }

  /** @throws EtudeError UNAUTHENTICATED, PERMISSION_DENIED, CANCELLED, DEADLINE_EXCEEDED */
  admit(method: DescMethod, { authorization, signal, deadlineMs }: Arrival): CallContext {
    const identity = this.parts.authenticator.identify(authorization);
    const { role } = this.#of(method);
    if (!hasRole(identity.roles, role))
      throw new EtudeError(
        'PERMISSION_DENIED',
        `This call needs a key with the role "${role}"; this one has: ${identity.roles.join(', ')}.`,
      );
    signal.throwIfAborted();
    if (deadlineMs <= Date.now())
      throw new EtudeError('DEADLINE_EXCEEDED', 'The deadline of this call was over before any work began; set a later one.');
    return { ...identity, deadlineMs, signal: AbortSignal.any([signal, this.parts.shutdown]) };
  }

  #of(method: DescMethod): Served {
    const served = this.#served.get(method);
    if (served === undefined) throw new Error(`${method.parent.typeName}.${method.name} has no handler`);
    return served;
  }

  #surrounded(method: DescMethod): AnyHandler {
    const { handle, isCounted } = this.#of(method);
    if (method.methodKind === 'server_streaming')
      return (request, call) => this.#streamed(method, call, () => handle(request, call) as AsyncIterable<object>, request);
    return (request, call) =>
      this.#measured(method, call, async () => {
        if (isCounted) this.#take(call.tenant);
        try {
          const checked =
            method.methodKind === 'client_streaming' ? eachChecked(request as AsyncIterable<object>) : checkedRequest(request);
          return await handle(checked, call);
        } finally {
          if (isCounted) this.#giveBack(call.tenant);
        }
      });
  }

  async #measured<T>(method: DescMethod, call: CallContext, work: () => Promise<T>): Promise<T> {
    const done = measure(method);
    try {
      const answer = await work();
      done('OK');
      return answer;
    } catch (error) {
      const told = this.#told(error, method, call);
      done(told.code);
      throw told;
    }
  }

  /** A caller that leaves in the middle ends the stream without an error. */
  async *#streamed(method: DescMethod, call: CallContext, open: () => AsyncIterable<object>, request: object): AsyncGenerator<object> {
    const done = measure(method);
    let code = 'CANCELLED';
    try {
      checkedRequest(request);
      yield* open();
      call.signal.throwIfAborted();
      code = 'OK';
    } catch (error) {
      const told = this.#told(error, method, call);
      code = told.code;
      throw told;
    } finally {
      done(code);
    }
  }

  /**
   * The error that the caller gets. An error with a code keeps its code and message; an abort becomes the reason of the call's end. Anything
   * else is a mistake of ours: it is logged under an id, and the caller gets only the id.
   */
  #told(thrown: unknown, method: DescMethod, { signal }: CallContext): EtudeError {
    const error: unknown = isAbort(thrown) && signal.aborted ? signal.reason : thrown;
    const code = errorCode(error);
    const name = `/${method.parent.typeName}/${method.name}`;
    if (code !== 'INTERNAL') {
      const { message, details } = error as EtudeError;
      if (ERROR_KINDS[code].fault === 'system') this.parts.log.warn({ method: name, errorCode: code, reason: message }, 'Call failed');
      // It may come from another process or another copy of the class, so that only its shape counts.
      return new EtudeError(code, message, details ?? {}, { cause: error });
    }
    const id = randomUUID();
    this.parts.log.error({ method: name, errorId: id, err: error }, 'Call failed for a reason that has no code');
    const message = `Something went wrong inside the gateway. Tell the operator this id, it is in the log: ${id}.`;
    return new EtudeError('INTERNAL', message, { metadata: { id } });
  }

  /** A call counts until its work is over, also where its caller has left: who calls and cancels by the thousand holds up nobody else. */
  #take(tenant: string): void {
    const working = this.#working.get(tenant) ?? 0;
    if (working >= this.parts.perTenantMax)
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

function measure(method: DescMethod): (code: string) => void {
  const path = `/${method.parent.typeName}/${method.name}`;
  const stop = seconds.startTimer({ method: path });
  return (code) => {
    stop();
    calls.inc({ method: path, code });
  };
}

/** @throws EtudeError INVALID_ARGUMENT where it has fields that this server does not know */
function checkedRequest(request: object): object {
  refuseAny(unknownFields(request));
  return request;
}

async function* eachChecked(requests: AsyncIterable<object>): AsyncGenerator<object> {
  for await (const request of requests) yield checkedRequest(request);
}
