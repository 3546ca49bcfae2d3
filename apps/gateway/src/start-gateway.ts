import type { Embedder } from '@etude/domain/ports/embedder';
import { createLogger } from '@etude/platform/logging';
import { runService } from '@etude/platform/run-service';
import type { INestApplicationContext, INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { MicroserviceOptions } from '@nestjs/microservices';
import { checkAuthentication, type GatewayConfig } from './gateway.config.js';
import { GatewayModule, gatewayParts } from './gateway.module.js';
import { McpServer } from './mcp/mcp-server.js';
import { RestServer } from './rest/rest-server.js';
import { GatewayServer } from './server/gateway.server.js';

/**
 * Starts the gateway. Redis may be away: it starts, says NOT_SERVING, and answers UNAVAILABLE until Redis is there.
 *
 * @throws EtudeError FAILED_PRECONDITION where a port is taken, nobody could call, or a key file is wrong; MEMORY_VERSION
 */
export function startGateway(config: GatewayConfig, embedder: Embedder): Promise<INestApplicationContext> {
  checkAuthentication(config);
  const logger = createLogger('gateway', config);
  const parts = gatewayParts(config, embedder, logger);
  const strategy = new GatewayServer(config.ETUDE_GRPC_HOST, config.ETUDE_GRPC_PORT, parts.drain, parts.health);
  return runService({
    name: 'gateway',
    module: GatewayModule.forRoot(config, parts, logger),
    config,
    create: (module) => NestFactory.createMicroservice<MicroserviceOptions>(module, { strategy, bufferLogs: true, abortOnError: false }),
    listen: async (app) => {
      await (app as INestMicroservice).listen();
      if (config.ETUDE_REST_PORT > 0) await app.get(RestServer).listen(config.ETUDE_REST_HOST, config.ETUDE_REST_PORT);
      if (config.ETUDE_MCP_PORT > 0) await app.get(McpServer).listen(config.ETUDE_MCP_HOST, config.ETUDE_MCP_PORT);
    },
    ready: () => ({
      grpcHost: config.ETUDE_GRPC_HOST,
      grpcPort: config.ETUDE_GRPC_PORT,
      ...(config.ETUDE_REST_PORT > 0 ? { restPort: config.ETUDE_REST_PORT } : {}),
      ...(config.ETUDE_MCP_PORT > 0 ? { mcpPort: config.ETUDE_MCP_PORT } : {}),
    }),
  });
}
