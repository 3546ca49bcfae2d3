import 'reflect-metadata';
import { loadConfig } from '@etude/platform/config';
import { createLogger } from '@etude/platform/logging';
import { runMain, runService } from '@etude/platform/run-service';
import { AppModule } from './app.module.js';
import { RolloutWorker } from './rollout-worker.js';
import { rolloutWorkerConfig } from './rollout-worker.config.js';

const name = 'rollout-worker';

await runMain(name, async () => {
  const config = loadConfig(rolloutWorkerConfig);
  const worker = await RolloutWorker.start(config, createLogger(name, config));
  await runService({ name, config, module: AppModule.forRoot(name, config, worker) });
});
