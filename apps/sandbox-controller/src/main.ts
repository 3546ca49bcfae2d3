import 'reflect-metadata';
import { loadConfig } from '@etude/platform/config';
import { HealthModule } from '@etude/platform/health';
import { createLogger, loggerModule } from '@etude/platform/logging';
import { runMain, runService } from '@etude/platform/run-service';
import { Module } from '@nestjs/common';
import { SandboxController } from './sandbox-controller.js';
import { sandboxControllerConfig } from './sandbox-controller.config.js';

const name = 'sandbox-controller';

@Module({})
class AppModule {}

await runMain(name, async () => {
  const config = loadConfig(sandboxControllerConfig);
  // Started before the application and closed with it.
  const controller = await SandboxController.start(config, createLogger(name, config));
  const module = {
    module: AppModule,
    imports: [loggerModule(name, config), HealthModule.forRoot({ checks: controller.checks() })],
    providers: [{ provide: SandboxController, useValue: controller }],
  };
  await runService({ name, config, module });
});
