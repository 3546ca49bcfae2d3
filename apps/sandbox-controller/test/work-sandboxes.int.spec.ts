import { workSandboxesConformance } from '@etude/domain/testing/work-sandboxes-conformance';
import { afterAll, beforeAll, describe } from 'vitest';
import { startInstallation, type TestInstallation } from './controller.harness.js';

let installation: TestInstallation;
beforeAll(async () => {
  installation = await startInstallation();
  await installation.start();
});
afterAll(() => installation.close());

describe('the work sandboxes of a controller', () => {
  workSandboxesConformance(async () => ({ workSandboxes: installation.workSandboxes }));
});
