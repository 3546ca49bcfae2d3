import 'reflect-metadata';
import { loadConfig } from '@etude/platform/config';
import { createLogger } from '@etude/platform/logging';
import { runMain, runService } from '@etude/platform/run-service';
import { AppModule } from './app.module.js';
import { SandboxController } from './sandbox-controller.js';
import { sandboxControllerConfig } from './sandbox-controller.config.js';

const name = 'sandbox-controller';

await runMain(name, async () => {
  const config = loadConfig(sandboxControllerConfig);
  const controller = await SandboxController.start(config, createLogger(name, config));
  await runService({ name, config, module: AppModule.forRoot(name, config, controller) });
});
