import { readFile } from 'node:fs/promises';
import { EtudeError } from '@etude/contracts/errors';
import { TemplateName } from '@etude/contracts/sandbox';
import { loadYaml } from '@kubernetes/client-node';
import { z } from 'zod';

const Toleration = z.strictObject({
  key: z.string().optional(),
  operator: z.enum(['Exists', 'Equal']).optional(),
  value: z.string().optional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
  tolerationSeconds: z.number().int().optional(),
});

const Cpu = z.string().regex(/^([0-9]+m|[0-9]+(\.[0-9]+)?)$/, 'processors are written as "2", "0.5" or "500m"');

/** How many pods of a template there are. */
const WarmSizes = z
  .strictObject({
    /** Pods at least, claimed ones included. */
    min: z.number().int().min(0).max(10_000).default(0),
    /** Pods at most, claimed and ending ones included, over all controllers of the installation. */
    max: z.number().int().min(1).max(10_000).default(16),
    /** Pods that wait for a claim. */
    free: z.number().int().min(0).max(10_000).default(2),
  })
  .refine(({ min, free, max }) => min <= max && free <= max, 'min and free are at most max');

/** Fields of the pod itself, as Kubernetes has them. */
export const PodFields = z.object({
  /** Such as gvisor or kata, a RuntimeClass of the cluster. */
  runtimeClassName: z.string().optional(),
  /** false: a user namespace of the pod's own, where the cluster offers them. */
  hostUsers: z.boolean().optional(),
  nodeSelector: z.record(z.string(), z.string()).default({}),
  tolerations: z.array(Toleration).default([]),
  priorityClassName: z.string().optional(),
  serviceAccountName: z.string().optional(),
  /** A pod ends this long after its start, whatever it does. */
  activeDeadlineSeconds: z.number().int().min(60).default(129_600),
});

/** One kind of sandbox pod. */
export const SandboxTemplate = z
  .strictObject({
    ...PodFields.shape,
    image: z.string().min(1),
    imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
    imagePullSecrets: z.array(z.string()).default([]),
    /** Processors at most: "1", "500m". */
    cpu: Cpu.default('1'),
    /** Processors set aside for each pod, claimed or not; as much as `cpu` unless given. Less lets pods share what few of them use. */
    cpuRequest: Cpu.optional(),
    /** Memory of the largest execution. Disk, shared memory and the supervisor come on top. */
    memoryMiB: z.number().int().min(16).max(65_536).default(512),
    /** Size of `/tmp`, which is held in memory. */
    diskMiB: z.number().int().min(1).max(65_536).default(128),
    warm: WarmSizes.prefault({}),
    /** What the image lets a cell import beyond the standard library; told to people, not enforced. */
    packages: z.array(z.string()).default([]),
    /** Addresses that may be reached, enforced outside of the pod by what `egressEnforcedBy` names, or refused. */
    egress: z.array(z.string()).default([]),
    /** Labels that the pod gets, by which a NetworkPolicy of the operator's selects it. Setting them is the operator's word for it. */
    egressEnforcedBy: z.record(z.string(), z.string()).default({}),
  })
  .refine(({ egress, egressEnforcedBy }) => egress.length === 0 || Object.keys(egressEnforcedBy).length > 0, {
    path: ['egress'],
    message:
      'is not empty, and nothing here enforces it: write a NetworkPolicy that allows exactly these addresses to pods with labels of your choice, and give those labels as egressEnforcedBy',
  });
export type SandboxTemplate = z.infer<typeof SandboxTemplate>;

/** By name; "default" is what a claim gets that names none. */
export const SandboxTemplates = z
  .record(TemplateName, SandboxTemplate)
  .refine((templates) => 'default' in templates, 'there is a template named "default"');
export type SandboxTemplates = z.infer<typeof SandboxTemplates>;

/**
 * Reads `ETUDE_SANDBOX_TEMPLATES_PATH`: YAML, of which JSON is a part; templates by name.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the file and the field
 */
export async function readTemplates(path: string): Promise<SandboxTemplates> {
  try {
    const parsed = SandboxTemplates.safeParse(loadYaml(await readFile(path, 'utf8')));
    if (parsed.success) return parsed.data;
    throw new Error(`they are not valid:\n${z.prettifyError(parsed.error)}`);
  } catch (error) {
    throw new EtudeError('INVALID_ARGUMENT', `the sandbox templates in ${path} can't be used: ${(error as Error).message}`);
  }
}
