import { randomUUID } from 'node:crypto';
import type { SandboxDriver } from '@etude/sandbox/sandbox-driver';
import { z } from 'zod';
import { SHAPE } from './sandbox-claims.js';

/** The settings with which a child process of the bench gets the same sandboxes as its parent. */
export const DriverChoice = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('local'), warm: z.number() }),
  z.strictObject({
    kind: z.literal('kubernetes'),
    warm: z.number(),
    podsMax: z.number(),
    installation: z.string(),
    tokenSecret: z.string(),
    kubeconfigPath: z.string(),
    namespace: z.string(),
    image: z.string(),
  }),
]);
export type DriverChoice = z.infer<typeof DriverChoice>;
export type KubernetesChoice = Extract<DriverChoice, { kind: 'kubernetes' }>;

/** An installation of its own, so that nothing is shared with other runs. */
export const newInstallation = () => ({ installation: `b${randomUUID().slice(0, 8)}`, tokenSecret: randomUUID() });

export interface StartedDriver {
  readonly driver: SandboxDriver;
  /** Sandboxes that wait for a claim at this moment. */
  free(): number;
  close(): Promise<void>;
}

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: console.error };

/** Loads a vendor's package only for the driver that uses it, so that a local run measures no Kubernetes client. */
export async function startDriver(choice: DriverChoice): Promise<StartedDriver> {
  if (choice.kind === 'local') {
    const { startLocalDriver } = await import('@etude/sandbox/local-driver');
    const driver = await startLocalDriver({ warm: choice.warm, warmDiskMiB: SHAPE.diskMiB });
    return { driver, free: () => driver.counts().free, close: () => driver.close() };
  }
  const { KubernetesDriver } = await import('@etude/sandbox/kubernetes/kubernetes-driver');
  const { SandboxTemplates } = await import('@etude/sandbox/kubernetes/sandbox-template');
  const { installation, tokenSecret, kubeconfigPath, namespace } = choice;
  const driver = await KubernetesDriver.start(
    { installation, tokenSecret, templates: SandboxTemplates.parse(templatesOf(choice)), logger: silent, alone: true },
    { kubeconfigPath, namespace },
    AbortSignal.timeout(30_000),
  );
  return { driver, free: () => driver.counts().free, close: () => driver.close() };
}

/** Small requests, so that a hundred pods fit on one node; the limits are the usual ones. */
export const templatesOf = ({ image, warm, podsMax }: KubernetesChoice) => ({
  default: {
    image,
    imagePullPolicy: 'Never',
    cpuRequest: '5m',
    memoryMiB: SHAPE.memoryMiB,
    diskMiB: SHAPE.diskMiB,
    warm: { max: podsMax, free: warm },
  },
});
