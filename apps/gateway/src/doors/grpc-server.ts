import { createRequire } from 'node:module';
import { Health } from '@etude/contracts/gen/grpc/health/v1/health_pb';
import { reflectionPackage, SERVICES } from '@etude/contracts/grpc';
import { addService as addCalls, listenGrpc, type ListeningServer } from '@etude/contracts/grpc-server';
import { portError } from '@etude/platform/health';
import type { handleBidiStreamingCall, MethodDefinition, Server } from '@grpc/grpc-js';
import type { Calls } from '../calls/calls.js';
import { sizeProblem } from '../calls/request-limits.js';
import type { HealthReporter } from './health-reporter.js';

export interface GrpcDoorParts {
  readonly calls: Calls;
  readonly health: HealthReporter;
  /** Called for failures outside of handlers. */
  readonly onMistake: (method: string, errorId: string, error: unknown) => void;
}

/** Serves all services of `etude.v1`, health and reflection. @throws EtudeError FAILED_PRECONDITION if the port can't be opened */
export async function listenForGrpc(host: string, port: number, { calls, health, onMistake }: GrpcDoorParts): Promise<ListeningServer> {
  const add = (server: Server) => {
    for (const service of Object.values(SERVICES)) {
      addCalls(server, service, calls.handlersOf(service), {
        open: ({ metadata, ...call }, method) => calls.admit(method, { ...call, authorization: metadata.get('authorization') }),
        refusal: sizeProblem,
        onMistake,
      });
    }
    health.addToServer(server);
    addReflection(server);
  };
  try {
    return await listenGrpc(host, port, add);
  } catch (error) {
    throw portError(error as Error, host, port, 'ETUDE_GRPC_PORT');
  }
}

interface Reflection {
  readonly method: MethodDefinition<unknown, unknown>;
  readonly answer: handleBidiStreamingCall<unknown, unknown>;
}

/** The methods of the package for reflection, by path. */
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

/** Both versions of reflection. Their package is loaded by the first question, because it costs 11 MiB of memory. */
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
