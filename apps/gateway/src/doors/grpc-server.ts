import { Health } from '@etude/contracts/gen/grpc/health/v1/health_pb';
import { reflectionPackage, SERVICES } from '@etude/contracts/grpc';
import { addService, listenGrpc, type ListeningServer } from '@etude/contracts/grpc-server';
import { portError } from '@etude/platform/health';
import type { Server } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
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
    for (const service of SERVICES) {
      addService(server, service, calls.handlersOf(service), {
        open: ({ metadata, ...call }, method) => calls.admit(method, { ...call, authorization: metadata.get('authorization') }),
        refusal: sizeProblem,
        onMistake,
      });
    }
    health.addToServer(server);
    new ReflectionService(reflectionPackage(...SERVICES, Health) as never).addToServer(server);
  };
  try {
    return await listenGrpc(host, port, add);
  } catch (error) {
    throw portError(error as Error, host, port, 'ETUDE_GRPC_PORT');
  }
}
