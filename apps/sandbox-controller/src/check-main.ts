/** For `etude doctor`: starts local sandboxes with the controller's settings and prints whether each gets a host user of its own. Exit code 1: no. */
import { loadConfig } from '@etude/platform/config';
import { startLocalDriver } from '@etude/sandbox/local-driver';
import { localOptions, sandboxControllerConfig } from './sandbox-controller.config.js';

try {
  const driver = await startLocalDriver({ ...localOptions(loadConfig(sandboxControllerConfig)), warm: 0 });
  const shortcoming = driver.check();
  await driver.close();
  console.log(shortcoming ?? 'one for each sandbox');
  process.exitCode = shortcoming === undefined ? 0 : 1;
} catch (error) {
  console.log((error as Error).message);
  process.exitCode = 1;
}
