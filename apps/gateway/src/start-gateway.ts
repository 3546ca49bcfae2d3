import type { Embedder } from '@etude/domain/ports/embedder';
import { createLogger, loggerModule } from '@etude/platform/logging';
import { runService } from '@etude/platform/run-service';
import type { INestApplicationContext } from '@nestjs/common';
import { checkAuthentication, type GatewayConfig } from './config/gateway-config.js';
import { Gateway } from './gateway.js';

class GatewayModule {}

/**
 * Starts the gateway. It also starts without Redis: then it reports NOT_SERVING and answers UNAVAILABLE until Redis is reachable.
 *
 * @throws EtudeError FAILED_PRECONDITION if a port is taken, nobody could call, or a key file is wrong; MEMORY_VERSION
 */
export function startGateway(config: GatewayConfig, embedder: Embedder): Promise<INestApplicationContext> {
  checkAuthentication(config);
  const gateway = new Gateway(config, embedder, createLogger('gateway', config));
  const { ETUDE_GRPC_HOST: grpcHost, ETUDE_GRPC_PORT: grpcPort, ETUDE_REST_PORT: restPort, ETUDE_MCP_PORT: mcpPort } = config;
  return runService({
    name: 'gateway',
    module: {
      module: GatewayModule,
      imports: [loggerModule('gateway', config)],
      providers: [{ provide: Gateway, useValue: gateway }],
    },
    config,
    checks: gateway.checks,
    listen: () => gateway.listen(),
    ready: () => ({ grpcHost, grpcPort, ...(restPort > 0 ? { restPort } : {}), ...(mcpPort > 0 ? { mcpPort } : {}) }),
  });
}
