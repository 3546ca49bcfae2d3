import { hash, randomInt } from 'node:crypto';
import { arch } from 'node:process';
import { EtudeError } from '@etude/contracts/errors';
import type { V1Container, V1PodSpec } from '@kubernetes/client-node';
import { seccompFilter } from '../seccomp.js';
import type { PodManifest } from './kube-api.js';
import { LABELS, podNameOf, tokenDigestOf } from './pod-identity.js';
import { POOL_SETTINGS } from './pool-settings.js';
import { PodFields, type SandboxTemplate } from './sandbox-template.js';

/** Size of `/dev/shm`, which is held in memory like `/tmp`. */
const SHARED_MEMORY_MIB = 8;
/** Memory of the supervisor and the interpreters that it keeps ready, with the kernel's memory for them. */
const SUPERVISOR_MEMORY_MIB = 96;
/** Disk for logs and the termination message. Everything else is written to memory. */
const LOCAL_STORAGE_MIB = 16;
/** In a folder that only root can enter, so that user code can't write there. */
const TERMINATION_PATH = '/run/etude/hidden/termination';

/** The settings that all pods of a template share. */
export interface PodKind {
  readonly name: string;
  readonly template: SandboxTemplate;
  readonly installation: string;
  readonly controller: string;
  /** System call filter for code, in hex. */
  readonly filter: string;
  /** Digest of a pod's manifest, without the parts that differ in each pod (`PodVariety`) and without the controller. */
  readonly digest: string;
}

/** Settings that differ in each pod. */
interface PodVariety {
  readonly slot: number;
  readonly nonce: string;
  readonly token: string;
  /** Unprivileged user and group. Each pod has its own, because RLIMIT_NPROC counts per user over a whole node. */
  readonly user: number;
}

/** Picks a random user that is not in `taken`. A pod with a user namespace of its own has only 65,536 users. */
export function userOf(template: SandboxTemplate, taken: ReadonlySet<number | null>): number {
  const [first, count] = template.hostUsers === false ? [1_000, 60_000] : [100_000, 2_000_000_000];
  for (;;) {
    const user = first + randomInt(count);
    if (!taken.has(user)) return user;
  }
}

/** @throws EtudeError SANDBOX_CONTROL_MISSING where this machine's architecture has no system call filter */
export function podKind(name: string, template: SandboxTemplate, installation: string, controller: string): PodKind {
  const kind = { name, template, installation, controller: '', filter: podFilter(template), digest: '' };
  const pod = podManifest(kind, { slot: 0, nonce: '', token: '', user: 0 });
  return { ...kind, controller, digest: hash('sha256', JSON.stringify(pod)).slice(0, 16) };
}

/** A pod under the "restricted" standard with the supervisor as process 1, not claimed yet. */
export function podManifest(kind: PodKind, variety: PodVariety): PodManifest {
  const { name, template, installation, controller, digest } = kind;
  const labels = {
    ...template.egressEnforcedBy,
    'app.kubernetes.io/name': 'etude-sandbox',
    [LABELS.pool]: installation,
    [LABELS.template]: name,
    [LABELS.digest]: digest,
    [LABELS.slot]: String(variety.slot),
    [LABELS.state]: 'warm',
    [LABELS.controller]: controller,
    [LABELS.nonce]: variety.nonce,
  };
  const metadata = { name: podNameOf(installation, name, variety.slot), labels };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: podSpec(kind, variety) };
}

const inMemory = (name: string, mib: number) => ({ name, emptyDir: { medium: 'Memory', sizeLimit: `${mib}Mi` } });

function podSpec(kind: PodKind, { user, token }: PodVariety): V1PodSpec {
  const { template } = kind;
  const options = Object.entries({ attempts: '1', timeout: '1' }).map(([name, value]) => ({ name, value }));
  return {
    ...PodFields.parse(template),
    imagePullSecrets: template.imagePullSecrets.map((name) => ({ name })),
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 1,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    hostname: 'sandbox',
    // The API requires a name server. Nothing answers at this address, so no name resolves.
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['127.0.0.1'], options },
    securityContext: { runAsNonRoot: true, runAsUser: user, runAsGroup: user, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [container(kind, token)],
    volumes: [inMemory('tmp', template.diskMiB), inMemory('shm', SHARED_MEMORY_MIB), inMemory('nothing', 1)],
  };
}

const fromPod = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } } });

function container({ template, filter }: PodKind, token: string): V1Container {
  const memoryMiB = template.memoryMiB + template.diskMiB + SHARED_MEMORY_MIB + SUPERVISOR_MEMORY_MIB;
  const limits = { cpu: template.cpu, memory: `${memoryMiB}Mi`, 'ephemeral-storage': `${LOCAL_STORAGE_MIB}Mi` };
  return {
    name: 'sandbox',
    image: template.image,
    imagePullPolicy: template.imagePullPolicy,
    ports: [{ name: 'supervisor', containerPort: POOL_SETTINGS.port, protocol: 'TCP' }],
    env: [
      { name: 'ETUDE_SANDBOX_PORT', value: String(POOL_SETTINGS.port) },
      fromPod('ETUDE_SANDBOX_POD', 'metadata.name'),
      fromPod('ETUDE_SANDBOX_UID', 'metadata.uid'),
      { name: 'ETUDE_SANDBOX_NAME', value: '$(ETUDE_SANDBOX_POD)/$(ETUDE_SANDBOX_UID)' },
      { name: 'ETUDE_SANDBOX_TOKEN_SHA256', value: token === '' ? '' : tokenDigestOf(token) },
      { name: 'ETUDE_SANDBOX_FILTER', value: filter },
    ],
    resources: { requests: { ...limits, cpu: template.cpuRequest ?? template.cpu }, limits },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      privileged: false,
      capabilities: { drop: ['ALL'] },
    },
    terminationMessagePath: TERMINATION_PATH,
    terminationMessagePolicy: 'File',
    volumeMounts: [
      { name: 'tmp', mountPath: '/tmp' },
      { name: 'shm', mountPath: '/dev/shm' },
      // Hides the message queues of the pod, because any user may create files there.
      { name: 'nothing', mountPath: '/dev/mqueue', readOnly: true },
      // Hides the terminals, because the whole node shares one limit of them.
      { name: 'nothing', mountPath: '/dev/pts', readOnly: true },
    ],
  };
}

/** The system call filter for code, in hex. Without an egress list it refuses internet sockets, even to the pod's own address. */
function podFilter(template: SandboxTemplate): string {
  const filter = seccompFilter(arch, { network: template.egress.length > 0 });
  if (filter) return filter.toString('hex');
  throw new EtudeError('SANDBOX_CONTROL_MISSING', `there is no system call filter for ${arch}`, { metadata: { control: 'syscalls' } });
}
