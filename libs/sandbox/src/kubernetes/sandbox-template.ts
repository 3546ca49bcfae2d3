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

const Cpu = z.string().regex(/^([0-9]+m|[0-9]+(\.[0-9]+)?)$/, 'must be a number of processors such as "2", "0.5" or "500m"');

/** Numbers of pods of a template. */
const WarmSizes = z
  .strictObject({
    /** Maximum number of pods over all controllers of the installation, including claimed and ending pods. */
    max: z.number().int().min(1).max(10_000).default(16),
    /** Number of unclaimed pods to keep ready. */
    free: z.number().int().min(0).max(10_000).default(2),
  })
  .refine(({ free, max }) => free <= max, 'free must be at most max');

/** Fields that are copied to the specification of the pod. */
export const PodFields = z.object({
  /** A RuntimeClass of the cluster, such as gvisor or kata. */
  runtimeClassName: z.string().optional(),
  /** false: the pod gets its own user namespace, where the cluster supports that. */
  hostUsers: z.boolean().optional(),
  nodeSelector: z.record(z.string(), z.string()).default({}),
  tolerations: z.array(Toleration).default([]),
  priorityClassName: z.string().optional(),
  serviceAccountName: z.string().optional(),
  /** A pod ends this long after its start, even if it is in use. */
  activeDeadlineSeconds: z.number().int().min(60).default(129_600),
});

export const SandboxTemplate = z
  .strictObject({
    ...PodFields.shape,
    image: z.string().min(1),
    imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
    imagePullSecrets: z.array(z.string()).default([]),
    /** Maximum number of processors, such as "1" or "500m". */
    cpu: Cpu.default('1'),
    /** Processors reserved for each pod, claimed or not; default `cpu`. With less, more pods fit on a node and share its processors. */
    cpuRequest: Cpu.optional(),
    /** Memory of the largest execution. Memory for disk, shared memory and the supervisor is added. */
    memoryMiB: z.number().int().min(16).max(65_536).default(512),
    /** Size of `/tmp`, which is held in memory. */
    diskMiB: z.number().int().min(1).max(65_536).default(128),
    warm: WarmSizes.prefault({}),
    /** Packages of the image beyond the standard library; for information, not checked. */
    packages: z.array(z.string()).default([]),
    /** Addresses that pods may reach. `egressEnforcedBy` must name the labels of the enforcing policy, or the template is refused. */
    egress: z.array(z.string()).default([]),
    /** Labels for the pod, by which the operator's NetworkPolicy selects it. Whether such a policy exists isn't checked. */
    egressEnforcedBy: z.record(z.string(), z.string()).default({}),
  })
  .refine(({ egress, egressEnforcedBy }) => egress.length === 0 || Object.keys(egressEnforcedBy).length > 0, {
    path: ['egress'],
    message:
      'needs a NetworkPolicy that allows exactly these addresses to pods with certain labels. Write one, and give its labels as egressEnforcedBy.',
  });
export type SandboxTemplate = z.infer<typeof SandboxTemplate>;

/** Templates by name. A claim without a template name gets "default". */
export const SandboxTemplates = z
  .record(TemplateName, SandboxTemplate)
  .refine((templates) => 'default' in templates, 'must contain a template named "default"');
export type SandboxTemplates = z.infer<typeof SandboxTemplates>;

/** Reads templates by name from a YAML or JSON file. @throws EtudeError INVALID_ARGUMENT naming the file and the field */
export async function readTemplates(path: string): Promise<SandboxTemplates> {
  try {
    const parsed = SandboxTemplates.safeParse(loadYaml(await readFile(path, 'utf8')));
    if (parsed.success) return parsed.data;
    throw new Error(z.prettifyError(parsed.error));
  } catch (error) {
    throw new EtudeError('INVALID_ARGUMENT', `the sandbox templates in ${path} can't be used: ${(error as Error).message}`);
  }
}
