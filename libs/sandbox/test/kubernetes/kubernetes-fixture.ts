import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { DrivenSandboxes } from '../../src/driven-sandboxes.js';
import type { StartedSandboxes } from '../sandbox-fixture.js';
import { KubernetesDriver } from '../../src/kubernetes/kubernetes-driver.js';
import { type SandboxTemplate, SandboxTemplates } from '../../src/kubernetes/sandbox-template.js';

/** Set by the run that has a cluster. */
const fromRun = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: these tests need a cluster, run them with ./etude test --cluster`);
  return value;
};

/** The namespace is made by whoever starts the run, and given to vitest as `sandboxNamespace`. */
export const testCluster = () => ({
  kubeconfigPath: fromRun('KUBECONFIG'),
  namespace: process.env['ETUDE_TEST_SANDBOX_NAMESPACE'] ?? (inject('sandboxNamespace' as never) as string),
  image: fromRun('ETUDE_SANDBOX_IMAGE'),
});

/** Only what goes wrong is of interest in a test. */
export const quiet = { debug: () => undefined, info: () => undefined, warn: console.warn, error: console.error };

/** Templates of the image under test: small requests, so that many pods fit on one node. */
export function testTemplates(more: Partial<SandboxTemplate> = {}): SandboxTemplates {
  return SandboxTemplates.parse({
    default: { image: testCluster().image, imagePullPolicy: 'Never', cpuRequest: '10m', warm: { min: 0, max: 16, free: 4 }, ...more },
  });
}

/** Pods of an installation of their own, which is gone when they are closed. */
export async function startKubernetes(templates = testTemplates()): Promise<StartedSandboxes & { readonly driver: KubernetesDriver }> {
  const { kubeconfigPath, namespace } = testCluster();
  const driver = await KubernetesDriver.start(
    { installation: `t${randomUUID().slice(0, 8)}`, tokenSecret: randomUUID(), templates, logger: quiet, alone: true },
    { kubeconfigPath, namespace },
    AbortSignal.timeout(30_000),
  );
  const sandboxes = new DrivenSandboxes(driver, { concurrencyMax: 8, waitingMax: 1_000 });
  const close = async () => {
    sandboxes.close();
    await driver.close();
  };
  return { sandboxes, driver, close };
}
