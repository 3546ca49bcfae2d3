import { HealthModule } from '@etude/platform/health';
import { loggerModule } from '@etude/platform/logging';
import { type DynamicModule, Module } from '@nestjs/common';
import { SandboxController } from './sandbox-controller.js';
import type { SandboxControllerConfig } from './sandbox-controller.config.js';

@Module({})
export class AppModule {
  /** The controller is started before and closed with the application. */
  static forRoot(name: string, config: SandboxControllerConfig, controller: SandboxController): DynamicModule {
    return {
      module: AppModule,
      imports: [loggerModule(name, config), HealthModule.forRoot({ checks: controller.checks() })],
      providers: [{ provide: SandboxController, useValue: controller }],
    };
  }
}
