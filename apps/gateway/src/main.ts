import 'reflect-metadata';
import { embedderFrom } from '@etude/model/model-config';
import { loadConfig } from '@etude/platform/config';
import { runMain } from '@etude/platform/run-service';
import { gatewayConfig } from './config/gateway-config.js';
import { startGateway } from './gateway.js';

await runMain('gateway', async () => {
  const config = loadConfig(gatewayConfig);
  return startGateway(config, (tracing, warn) => embedderFrom(config, { warn, tracing }));
});
