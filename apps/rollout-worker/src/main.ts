import 'reflect-metadata';
import { loadConfig } from '@etude/platform/config';
import { HealthModule } from '@etude/platform/health';
import { createLogger, loggerModule } from '@etude/platform/logging';
import { runMain, runService } from '@etude/platform/run-service';
import { type DynamicModule, Module } from '@nestjs/common';
import { RolloutWorker, rolloutWorkerConfig, type RolloutWorkerConfig } from './rollout-worker.js';

@Module({})
export class AppModule {
  /** The worker is started before and closed with the application. */
  static forRoot(name: string, config: RolloutWorkerConfig, worker: RolloutWorker): DynamicModule {
    return {
      module: AppModule,
      imports: [loggerModule(name, config), HealthModule.forRoot({ checks: worker.checks() })],
      providers: [{ provide: RolloutWorker, useValue: worker }],
    };
  }
}

const name = 'rollout-worker';

await runMain(name, async () => {
  const config = loadConfig(rolloutWorkerConfig);
  const worker = await RolloutWorker.start(config, createLogger(name, config));
  await runService({ name, config, module: AppModule.forRoot(name, config, worker) });
});
