import { workSandboxesConformance } from '@etude/domain/testing/work-sandboxes-conformance';
import { SandboxLimits } from '@etude/contracts/sandbox';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startInstallation, type TestInstallation } from './controller.harness.js';

let installation: TestInstallation;
beforeAll(async () => {
  installation = await startInstallation();
  await installation.start();
});
afterAll(() => installation.close());

describe('the work sandboxes of a controller', () => {
  workSandboxesConformance(async () => ({ workSandboxes: installation.workSandboxes }));

  it("don't count among the sandboxes of the tenant's callers", async () => {
    const request = { tenant: 'many', requestId: 'r-1', template: undefined, limits: SandboxLimits.parse({}) };
    const sandbox = await installation.workSandboxes.open(request, new AbortController().signal);
    onTestFinished(() => sandbox.close(new AbortController().signal));
    expect((await installation.session('many', sandbox.name)).state).toBe('open');
    expect(await installation.openCount('many')).toBe(0);
  });
});
