import { HealthModule } from '@etude/platform/health';
import { loggerModule } from '@etude/platform/logging';
import { type DynamicModule, Module } from '@nestjs/common';
import { ConsolidationWorker } from './consolidation-worker.js';
import type { ConsolidationWorkerConfig } from './consolidation-worker.config.js';

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
