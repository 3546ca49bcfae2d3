/** For `etude doctor`: opens a local sandbox with the controller's settings, prints whether each has a user of its own, and ends with 0 or 1. */
import { loadConfig } from '@etude/platform/config';
import { sandboxControllerConfig } from './sandbox-controller.config.js';
import { startLocal } from './start-driver.js';

try {
  const driver = await startLocal({ ...loadConfig(sandboxControllerConfig), ETUDE_SANDBOX_WARM: 0 });
  const shortcoming = driver.check();
  await driver.close();
  console.log(shortcoming ?? 'one for each sandbox');
  process.exitCode = shortcoming === undefined ? 0 : 1;
} catch (error) {
  console.log((error as Error).message);
  process.exitCode = 1;
}
