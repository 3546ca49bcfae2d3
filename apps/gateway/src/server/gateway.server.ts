import { EtudeError } from '@etude/contracts/errors';
import { packageDefinition, reflectionPackage, type ServerCall } from '@etude/contracts/grpc';
import { PACKAGE, SERVICES } from '@etude/contracts/grpc-services';
import { portError } from '@etude/platform/health';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import { ServerGrpc } from '@nestjs/microservices';
import { lastValueFrom } from 'rxjs';
import { withinLimits } from '../calls/check-request.js';
import { RequestStream } from '../calls/request-stream.js';
import { addressOf } from '../gateway.config.js';
import type { Drain } from './drain.js';
import { healthReflection } from './health-descriptor.js';
import type { HealthReporter } from './health-reporter.js';

/** Of one message, either way. */
export const MESSAGE_MAX_BYTES = 16 * 1024 * 1024;
/** Calls that are still running when the server closes get this long. */
const CLOSE_GRACE_MS = 3_000;

const CHANNEL_OPTIONS = {
  'grpc.max_receive_message_length': MESSAGE_MAX_BYTES,
  'grpc.max_send_message_length': -1,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.keepalive_permit_without_calls': 1,
};

type StreamMethod = ReturnType<ServerGrpc['createRequestStreamMethod']>;

const why = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Nest's gRPC server, except for when it opens its port (after it knows its services) and how it closes. */
export class GatewayServer extends ServerGrpc {
  constructor(
    private readonly host: string,
    private readonly port: number,
    private readonly drain: Drain,
    private readonly health: HealthReporter,
  ) {
    super({ url: addressOf(host, port), package: PACKAGE, packageDefinition: withinLimits(packageDefinition(...SERVICES)) });
  }

  override createClient(): Promise<Server> {
    const server = new Server(CHANNEL_OPTIONS);
    this.health.addToServer(server);
    const described = { ...reflectionPackage(...SERVICES), ...healthReflection };
    new ReflectionService(described as never).addToServer(server);
    return Promise.resolve(server);
  }

  /** Before the port is open every service is there: a caller that reconnects never meets UNIMPLEMENTED. */
  override async start(callback?: () => void): Promise<void> {
    await this.bindEvents();
    await new Promise<void>((resolve, reject) => {
      const server = this.grpcClient as unknown as Server;
      server.bindAsync(this.url, ServerCredentials.createInsecure(), (error) => {
        if (error) reject(this.#cannotOpen(error));
        else resolve();
      });
    });
    callback?.();
  }

  /** Nest pushes what arrives into an Observable, without bound where its reader is slow; here the reader pulls. */
  override createRequestStreamMethod(handler: (...args: unknown[]) => Promise<unknown>): StreamMethod {
    return async (call, callback) => {
      try {
        const requests = new RequestStream(call as unknown as ServerCall);
        const answer: unknown = await handler(requests, (call as unknown as ServerCall).metadata, call);
        callback(null, await lastValueFrom(this.transformToObservable(answer)));
      } catch (error) {
        callback(error, null);
      }
    };
  }

  #cannotOpen(error: Error): EtudeError {
    const code = /EADDRINUSE/.test(why(error)) ? 'EADDRINUSE' : (/\bE[A-Z]{3,}\b/.exec(why(error))?.[0] ?? why(error));
    return portError(Object.assign(new Error(error.message), { code }), this.host, this.port, 'ETUDE_GRPC_PORT');
  }

  /** Watches and waits end with SHUTTING_DOWN, other calls finish; what is left after a grace is cut. */
  override async close(): Promise<void> {
    this.health.close();
    this.drain.begin();
    const server = this.grpcClient as unknown as Server | null;
    if (!server) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        server.forceShutdown();
        resolve();
      }, CLOSE_GRACE_MS);
      server.tryShutdown(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
