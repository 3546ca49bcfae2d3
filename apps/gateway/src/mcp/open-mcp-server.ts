import { readFileSync } from 'node:fs';
import type { QueueLogger } from '@etude/queue/redis/redis';
import { z } from 'zod';
import type { Authenticator } from '../calls/authenticator.js';
import { type GatewayConfig, ownAddress } from '../gateway.config.js';
import { McpDoor } from './mcp-door.js';
import { McpServer } from './mcp-server.js';

const { version } = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')));

/** As the settings say; it listens once it is told to. */
export function mcpServerFrom(config: GatewayConfig, authenticator: Authenticator, logger: QueueLogger): McpServer {
  const { ETUDE_MCP_HOST: host, ETUDE_MCP_ALLOWED_HOSTS: hosts, ETUDE_MCP_ALLOWED_ORIGINS: origins } = config;
  return new McpServer({
    address: ownAddress(config),
    authenticator,
    door: new McpDoor({ host, hosts, origins }),
    version,
    log: (message, details) => logger.warn(details, message),
  });
}
