import 'reflect-metadata';
import type { Embedder } from '@etude/domain/ports/embedder';
import { LexicalEmbedder } from '@etude/memory/lexical-embedder';
import { loadConfig } from '@etude/platform/config';
import { runMain } from '@etude/platform/run-service';
import { gatewayConfig } from './gateway.config.js';
import { startGateway } from './start-gateway.js';

/** The one that memory was made with. A model's client is loaded only where one is asked: it costs 20 MiB. */
async function embedderOf(model: string | undefined): Promise<Embedder> {
  if (model === undefined) return new LexicalEmbedder();
  const { embedderFrom, modelConfig } = await import('@etude/model/model-config');
  return embedderFrom(loadConfig(modelConfig)) ?? new LexicalEmbedder();
}

await runMain('gateway', async () => {
  const config = loadConfig(gatewayConfig);
  return startGateway(config, await embedderOf(config.ETUDE_EMBEDDING_MODEL));
});
