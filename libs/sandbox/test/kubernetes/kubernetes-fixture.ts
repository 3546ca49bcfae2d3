import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { KubernetesDriver } from '../../src/kubernetes/kubernetes-driver.js';
import { SandboxTemplates } from '../../src/kubernetes/sandbox-template.js';
import { driven, type StartedSandboxes } from '../sandbox-fixture.js';

/** A variable that `./etude test --cluster` sets. */
const fromRun = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: these tests need a cluster, run them with ./etude test --cluster`);
  return value;
};

/** Tests show only warnings and errors. */
const logger = { debug: () => undefined, info: () => undefined, warn: console.warn, error: console.error };

/** Starts a driver with an installation of its own. Its pods have small requests, so that many fit on one node. */
export async function startKubernetes(): Promise<StartedSandboxes> {
  const pods = { image: fromRun('ETUDE_SANDBOX_IMAGE'), imagePullPolicy: 'Never', cpuRequest: '10m', warm: { max: 16, free: 4 } };
  const options = { installation: `t${randomUUID().slice(0, 8)}`, tokenSecret: randomUUID(), logger, alone: true };
  const driver = await KubernetesDriver.start(
    { ...options, templates: SandboxTemplates.parse({ default: pods }) },
    { kubeconfigPath: fromRun('KUBECONFIG'), namespace: inject('sandboxNamespace' as never) as string },
    AbortSignal.timeout(30_000),
  );
  return driven(driver);
}
