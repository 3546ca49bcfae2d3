import type { EtudeError } from '@etude/contracts/errors';
import { SERVICES, reflectionPackage } from '@etude/contracts/grpc';
import { addService, listenGrpc, type ListeningServer } from '@etude/contracts/grpc-server';
import { portError } from '@etude/platform/health';
import type { Server } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import type { Calls } from '../calls/calls.js';
import { sizeProblem } from '../calls/request-limits.js';
import { healthReflection, type HealthReporter } from './health-reporter.js';

export interface GrpcDoorParts {
  readonly calls: Calls;
  readonly health: HealthReporter;
  /** Hears of failures outside of the handlers. */
  readonly onMistake: (method: string, errorId: string, error: unknown) => void;
}

/** Adds every service of `etude.v1`, health and reflection to a server. */
export function addServices(server: Server, { calls, health, onMistake }: GrpcDoorParts): void {
  for (const service of SERVICES) {
    addService(server, service, calls.handlersOf(service), {
      open: ({ metadata, signal, deadlineMs }, method) =>
        calls.admit(method, { authorization: metadata.get('authorization'), signal, deadlineMs }),
      refusal: sizeProblem,
      onMistake,
    });
  }
  health.addToServer(server);
  new ReflectionService({ ...reflectionPackage(...SERVICES), ...healthReflection } as never).addToServer(server);
}

/** @throws EtudeError FAILED_PRECONDITION where the port can't be opened */
export async function listenForGrpc(host: string, port: number, { calls, health, onMistake }: GrpcDoorParts): Promise<ListeningServer> {
  try {
    return await listenGrpc(host, port, (server) => addServices(server, { calls, health, onMistake }));
  } catch (error) {
    throw cannotOpen(error as Error, host, port);
  }
}

function cannotOpen(error: Error, host: string, port: number): EtudeError {
  const code = /EADDRINUSE/.test(error.message) ? 'EADDRINUSE' : (/\bE[A-Z]{3,}\b/.exec(error.message)?.[0] ?? error.message);
  return portError(Object.assign(new Error(error.message), { code }), host, port, 'ETUDE_GRPC_PORT');
}
