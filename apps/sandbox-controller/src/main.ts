import 'reflect-metadata';
import { runWorker } from '@etude/platform/run-service';
import { sandboxControllerConfig } from './sandbox-controller.config.js';
import { startSandboxController } from './sandbox-controller.js';

await runWorker('sandbox-controller', sandboxControllerConfig, startSandboxController);
