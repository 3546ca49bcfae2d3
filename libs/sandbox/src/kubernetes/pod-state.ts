import type { ExitReason } from '@etude/contracts/sandbox';
import type { LostSandbox } from '../sandbox-driver.js';
import type { V1ContainerStatus, V1Pod, V1PodCondition } from '@kubernetes/client-node';

interface PodProblem extends LostSandbox {
  /** false: the pod may recover, so claims keep waiting for it. */
  readonly final: boolean;
}

/** A temporary problem, such as an unreachable registry or a missing ConfigMap, counts as final after this long. */
export const START_PATIENCE_MS = 60_000;

const IMAGE_FINAL = /^(InvalidImageName|ErrImageNeverPull)$/;
const IMAGE_PASSING = /^(ErrImagePull|ImagePullBackOff|ImageInspectError|RegistryUnavailable|SignatureValidationFailed)$/;
/** Messages of a registry that answered and refused. */
const IMAGE_REFUSED = /: not found|= NotFound|manifest unknown|denied|unauthorized|authorization failed/i;
const START_FAILED = /^(CreateContainerConfigError|CreateContainerError|RunContainerError|CrashLoopBackOff|PostStartHookError)$/;
const NEVER_RAN = /^(StartError|ContainerCannotRun)$/;
/** Reasons of a container that the kubelet did not find after its own restart. */
const TRACELESS = /^(ContainerStatusUnknown|Unknown)$/;
const TAKEN_BY_KUBELET = /^(Evicted|Preempting|Terminated|NodeShutdown|Shutdown)$/;
/** Messages of an eviction because of the pod's own disk limits. Then the code is at fault, unlike for a node without disk space. */
const OWN_DISK_LIMIT =
  /ephemeral local storage usage exceeds|usage of emptydir volume .* exceeds|exceeded its local ephemeral storage limit/i;

/** `seen`: whether the rule applies. `what` and `detail` make the message. With `mayPass` the problem is not final. */
type Rule = readonly [seen: boolean, exit: ExitReason, what: string, detail?: string | undefined, mayPass?: boolean];

/**
 * The problem of a pod that this process has not ended, from its status alone; null for a pod that runs or starts.
 *
 * @param ageMs age of the pod on the monotonic clock, in ms; used only for problems with the start
 */
export function podProblem(pod: PodView, ageMs = 0): PodProblem | null {
  // Causes come before their effects. For example, an evicted pod is also deleted, and its container is killed.
  for (const [seen, exit, what, detail, mayPass = false] of [...lostRules(pod), ...startRules(pod, ageMs), ...endRules(pod)])
    if (seen) return { exit, final: !mayPass, message: detail ? `${what}: ${detail}` : what };
  return null;
}

function lostRules(pod: PodView): readonly Rule[] {
  const { reason, message, conditions } = pod.status;
  const node = `the node ${pod.nodeName ?? 'unknown'}`;
  const target = conditions['DisruptionTarget'];
  const disruption = target?.status === 'True' ? target : { reason: '', message: '' };
  const traceless = ends(pod).find(({ terminated }) => TRACELESS.test(terminated.reason));
  const taken = disruption.reason || (TAKEN_BY_KUBELET.test(reason) ? reason : '');
  const isEvicted = disruption.reason === 'TerminationByKubelet' || reason === 'Evicted';
  const killed = ends(pod).find(({ terminated }) => terminated.reason === 'OOMKilled');
  return [
    [disruption.reason === 'DeletionByPodGC', 'node_lost', `${node} is gone`, disruption.message],
    // The pods of an unreachable node are marked at once. By default, the node's taint evicts these pods five minutes later.
    [
      disruption.reason === 'DeletionByTaintManager' && isUnreported(pod),
      'node_lost',
      `${node} does not report any more`,
      disruption.message,
    ],
    [reason === 'NodeLost' || pod.phase === 'Unknown', 'node_lost', `${node} does not report`, message],
    // The kubelet may remove the containers of an evicted pod before it reads their exit (kubernetes/kubernetes#122160).
    [traceless !== undefined && !isEvicted, 'node_lost', `${node} lost the container`, traceless?.terminated.message],
    [
      taken !== '' && OWN_DISK_LIMIT.test(`${disruption.message} ${message}`),
      'disk',
      'the pod wrote more than its disk holds',
      message || disruption.message,
    ],
    [taken !== '', 'evicted', `the pod was evicted (${taken})`, disruption.message || message],
    [reason.startsWith('OutOf'), 'capacity', `the node had no room for the pod (${reason})`, message],
    [reason === 'NodeAffinity' || reason === 'UnexpectedAdmissionError', 'infra', `the node refused the pod (${reason})`, message],
    [killed !== undefined, 'oomkilled', `the kernel killed the container ${killed?.name}: its pod used more memory than its limit`],
    [reason === 'DeadlineExceeded', 'infra', 'the pod reached its activeDeadlineSeconds', message],
    [pod.deleting, 'evicted', `the pod ${pod.name} was deleted by somebody else`],
  ];
}

function startRules({ status }: PodView, ageMs: number): Rule[] {
  const patient = ageMs < START_PATIENCE_MS;
  return status.containers.flatMap(({ name, waiting, terminated }): Rule[] => {
    const { reason = '', message = '' } = waiting ?? {};
    const mayPass = patient && !IMAGE_FINAL.test(reason) && !IMAGE_REFUSED.test(message);
    const isImage = IMAGE_FINAL.test(reason) || IMAGE_PASSING.test(reason);
    const neverRan = terminated !== null && NEVER_RAN.test(terminated.reason);
    return [
      [isImage, 'image_pull', `the image of the pod can't be pulled (${reason})`, message, mayPass],
      [neverRan, 'infra', `the container ${name} could not be started (${terminated?.reason})`, terminated?.message],
      [START_FAILED.test(reason), 'infra', `the container ${name} cannot be started (${reason})`, message, patient],
    ];
  });
}

/** Exit code 0 is an orderly end. The likeliest cause of any other exit code is the code that ran, so a retry would fail too. */
function endRules(pod: PodView): readonly Rule[] {
  const { phase, nodeName, status } = pod;
  const over = phase === 'Failed' || phase === 'Succeeded';
  const end = ends(pod)[0]?.terminated;
  const how = end?.signal ? `signal ${end.signal}` : `exit code ${end?.exitCode}`;
  const scheduled = status.conditions['PodScheduled'];
  const unschedulable = scheduled?.status === 'False' && scheduled.reason !== 'SchedulingGated';
  return [
    [over && !end, 'infra', `the pod ended (${status.reason || phase})`, status.message],
    [end?.exitCode === 0, 'infra', 'the supervisor exited: its lease expired, or it received a close request'],
    [end !== undefined, 'kernel_lost', `the supervisor, process 1 of the pod, ended with ${how}`, end?.message],
    [unschedulable, 'capacity', `no node can take the pod (${scheduled?.reason})`, scheduled?.message, true],
    [isUnreported(pod), 'node_lost', `the node ${nodeName ?? 'unknown'} does not report any more`, undefined, true],
  ];
}

/** Whether the node is silent. The control plane then marks its pods as not ready without a reason; the kubelet would give one. */
function isUnreported({ phase, status }: PodView): boolean {
  const ready = status.conditions['Ready'];
  return phase === 'Running' && ready?.status === 'False' && ready.reason === '';
}

type Ended = ContainerStatusView & { readonly terminated: NonNullable<ContainerStatusView['terminated']> };

/** Ended containers, failed ones first. Empty if only some containers have ended, all with exit code 0, such as init containers. */
function ends({ status }: PodView): Ended[] {
  const ended = status.containers.filter((container): container is Ended => container.terminated !== null);
  return ended.length === status.containers.length || ended.some(({ terminated }) => terminated.exitCode !== 0)
    ? ended.toSorted((a, b) => Number(b.terminated.exitCode !== 0) - Number(a.terminated.exitCode !== 0))
    : [];
}

/** The part of pino's interface that this library needs. */
export interface KubeLogger {
  info(context: object, message: string): void;
  warn(context: object, message: string): void;
}

interface Told {
  readonly reason: string;
  readonly message: string;
}

interface ContainerStatusView {
  readonly name: string;
  readonly waiting: Told | null;
  /** How the container ended. For a restarted container, its last end. */
  readonly terminated: (Told & { readonly exitCode: number; readonly signal: number | null }) | null;
}

/** The fields of a pod that are kept in memory: some hundred bytes instead of ten kilobytes. */
export interface PodView {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ip: string | null;
  readonly nodeName: string | null;
  readonly user: number | null;
  /** Pending, Running, Succeeded, Failed, Unknown. */
  readonly phase: string;
  readonly deleting: boolean;
  readonly status: Told & {
    /** By type: PodScheduled, Ready, DisruptionTarget. */
    readonly conditions: Readonly<Record<string, Told & { readonly status: string }>>;
    /** Init containers first. */
    readonly containers: readonly ContainerStatusView[];
  };
}

const CONDITIONS = new Set(['PodScheduled', 'Ready', 'DisruptionTarget']);

const told = ({ reason = '', message = '' }: { reason?: string; message?: string }): Told => ({ reason, message });

/** @throws TypeError where name, uid or version are missing */
export function podView({ metadata, status = {}, spec }: V1Pod): PodView {
  if (!metadata?.name || !metadata.uid || !metadata.resourceVersion) throw new TypeError('no pod: name, uid or resourceVersion is missing');
  const { conditions = [], initContainerStatuses = [], containerStatuses = [] } = status;
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    labels: metadata.labels ?? {},
    ip: status.podIP || null,
    nodeName: spec?.nodeName || null,
    user: spec?.securityContext?.runAsUser ?? null,
    phase: status.phase ?? 'Unknown',
    deleting: Boolean(metadata.deletionTimestamp),
    status: {
      ...told(status),
      conditions: Object.fromEntries(conditions.filter(({ type }) => CONDITIONS.has(type)).map((one) => [one.type, conditionView(one)])),
      containers: [...initContainerStatuses, ...containerStatuses].map(containerView),
    },
  };
}

const conditionView = (condition: V1PodCondition) => ({ status: condition.status, ...told(condition) });

function containerView({ name, state = {}, lastState = {} }: V1ContainerStatus): ContainerStatusView {
  const terminated = state.terminated ?? lastState.terminated;
  return {
    name,
    waiting: state.waiting ? told(state.waiting) : null,
    terminated: terminated ? { ...told(terminated), exitCode: terminated.exitCode, signal: terminated.signal || null } : null,
  };
}
