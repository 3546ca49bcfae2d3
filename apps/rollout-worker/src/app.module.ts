import { HealthModule } from '@etude/platform/health';
import { loggerModule } from '@etude/platform/logging';
import { type DynamicModule, Module } from '@nestjs/common';
import { RolloutWorker } from './rollout-worker.js';
import type { RolloutWorkerConfig } from './rollout-worker.config.js';

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
