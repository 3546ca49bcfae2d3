import 'reflect-metadata';
import { embedderFrom } from '@etude/model/model-config';
import { loadConfig } from '@etude/platform/config';
import { createLogger } from '@etude/platform/logging';
import { runMain } from '@etude/platform/run-service';
import { gatewayConfig } from './config/gateway-config.js';
import { startGateway } from './gateway.js';

await runMain('gateway', async () => {
  const config = loadConfig(gatewayConfig);
  const logger = createLogger('gateway', config);
  return startGateway(config, await embedderFrom(config, { warn: (message) => logger.warn({}, message) }));
});
