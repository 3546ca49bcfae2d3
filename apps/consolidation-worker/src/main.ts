import 'reflect-metadata';
import { loadConfig } from '@etude/platform/config';
import { createLogger } from '@etude/platform/logging';
import { runMain, runService } from '@etude/platform/run-service';
import { AppModule } from './app.module.js';
import { ConsolidationWorker } from './consolidation-worker.js';
import { consolidationWorkerConfig } from './consolidation-worker.config.js';

const name = 'consolidation-worker';

await runMain(name, async () => {
  const config = loadConfig(consolidationWorkerConfig);
  const worker = await ConsolidationWorker.start(config, createLogger(name, config));
  await runService({ name, config, module: AppModule.forRoot(name, config, worker) });
});
