import 'reflect-metadata';
import { loadConfig } from '@etude/platform/config';
import { HealthModule } from '@etude/platform/health';
import { createLogger, loggerModule } from '@etude/platform/logging';
import { runMain, runService } from '@etude/platform/run-service';
import { type DynamicModule, Module } from '@nestjs/common';
import { consolidationWorkerConfig, type ConsolidationWorkerConfig } from './consolidation-worker.config.js';
import { ConsolidationWorker } from './consolidation-worker.js';

@Module({})
export class AppModule {
  /** The worker is started before and closed with the application. */
  static forRoot(name: string, config: ConsolidationWorkerConfig, worker: ConsolidationWorker): DynamicModule {
    return {
      module: AppModule,
      imports: [loggerModule(name, config), HealthModule.forRoot({ checks: worker.checks() })],
      providers: [{ provide: ConsolidationWorker, useValue: worker }],
    };
  }
}

const name = 'consolidation-worker';

await runMain(name, async () => {
  const config = loadConfig(consolidationWorkerConfig);
  const worker = await ConsolidationWorker.start(config, createLogger(name, config));
  await runService({ name, config, module: AppModule.forRoot(name, config, worker) });
});
