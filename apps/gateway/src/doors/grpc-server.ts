import { createRequire } from 'node:module';
import { Health } from '@etude/contracts/gen/grpc/health/v1/health_pb';
import { reflectionPackage, SERVICES } from '@etude/contracts/grpc';
import { addService as addCalls, listenGrpc, type ListeningServer } from '@etude/contracts/grpc-server';
import { type HealthCheck, portError } from '@etude/platform/health';
import type { ServerTls } from '@etude/platform/tls';
import type { handleBidiStreamingCall, MethodDefinition, Server } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { type Calls, requireSize } from '../calls/calls.js';

interface GrpcDoorParts {
  readonly calls: Calls;
  readonly health: ReturnType<typeof healthReporter>;
  readonly tls: ServerTls | null;
  /** Called for failures outside of handlers. */
  readonly onMistake: (method: string, errorId: string, error: unknown) => void;
}

/** Serves all services of `etude.v1`, health and reflection. @throws EtudeError FAILED_PRECONDITION if the port can't be opened */
export async function listenForGrpc(
  host: string,
  port: number,
  { calls, health, tls, onMistake }: GrpcDoorParts,
): Promise<ListeningServer> {
  const add = (server: Server) => {
    for (const service of Object.values(SERVICES)) {
      addCalls(server, service, calls.handlersOf(service), {
        open: ({ metadata, ...call }, method) => {
          const traceparent = metadata.get('traceparent')[0]?.toString();
          return calls.admit(method, { ...call, authorization: metadata.get('authorization'), traceparent });
        },
        checkBytes: requireSize,
        onMistake,
      });
    }
    health.addToServer(server);
    addReflection(server);
  };
  try {
    return await listenGrpc(host, port, add, tls?.grpc);
  } catch (error) {
    throw portError(error as Error, host, port, 'ETUDE_GRPC_PORT');
  }
}

interface Reflection {
  readonly method: MethodDefinition<unknown, unknown>;
  readonly answer: handleBidiStreamingCall<unknown, unknown>;
}

function loadReflection(): Map<string, Reflection> {
  const { ReflectionService } = createRequire(import.meta.url)('@grpc/reflection') as typeof import('@grpc/reflection');
  const loaded = new Map<string, Reflection>();
  const addService = (methods: Record<string, Reflection['method']>, answers: Record<string, Reflection['answer']>) => {
    const [[method], [answer]] = [Object.values(methods), Object.values(answers)];
    if (method && answer) loaded.set(method.path, { method, answer });
  };
  new ReflectionService(reflectionPackage(...Object.values(SERVICES), Health) as never).addToServer({ addService });
  return loaded;
}

/** Adds both versions of reflection. The first request loads their package, because it costs 11 MiB of memory. */
function addReflection(server: Server): void {
  let loaded: Map<string, Reflection> | null = null;
  for (const version of ['v1', 'v1alpha']) {
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    const known = () => (loaded ??= loadReflection()).get(path) as Reflection;
    const method: Reflection['method'] = {
      path,
      requestStream: true,
      responseStream: true,
      requestSerialize: (value) => known().method.requestSerialize(value),
      requestDeserialize: (bytes) => known().method.requestDeserialize(bytes),
      responseSerialize: (value) => known().method.responseSerialize(value),
      responseDeserialize: (bytes) => known().method.responseDeserialize(bytes),
    };
    server.addService({ ask: method }, { ask: (call: Parameters<Reflection['answer']>[0]) => known().answer(call) });
  }
}

const EVERY_MS = 1_000;
const { tasks, queues, consolidation, sandboxes } = SERVICES;
const NEED_REDIS: ReadonlySet<string> = new Set([tasks, queues, consolidation, sandboxes].map(({ typeName }) => typeName));
const NAMES = ['', ...Object.values(SERVICES).map(({ typeName }) => typeName)];

/** `grpc.health.v1`: a service is SERVING while its stores work. The empty name is SERVING while all services are. */
export function healthReporter(redis: HealthCheck, memory: HealthCheck) {
  const health = new HealthImplementation(Object.fromEntries(NAMES.map((name) => [name, 'NOT_SERVING'])));
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const report = (isServing: (name: string) => boolean) => {
    for (const name of NAMES) health.setStatus(name, isServing(name) ? 'SERVING' : 'NOT_SERVING');
  };
  return {
    addToServer: (server: Server) => health.addToServer(server),
    async start(): Promise<void> {
      const [isRedisUp = false, isMemoryUp = false] = (await Promise.allSettled([redis(), memory()])).map(
        ({ status }) => status === 'fulfilled',
      );
      if (isClosed) return;
      report((name) => (name === '' ? isRedisUp && isMemoryUp : NEED_REDIS.has(name) ? isRedisUp : isMemoryUp));
      timer = setTimeout(() => void this.start(), EVERY_MS).unref();
    },
    close(): void {
      isClosed = true;
      clearTimeout(timer);
      report(() => false);
    },
  };
}
