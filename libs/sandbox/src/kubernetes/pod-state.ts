import type { ExitReason } from '@etude/contracts/sandbox';
import type { ContainerStatusView, PodView } from './pod-view.js';

export interface PodProblem {
  readonly exit: ExitReason;
  /** For people: what was seen, in Kubernetes' own words. */
  readonly message: string;
  /** The pod will not recover: give it up now. Otherwise whoever waits for it decides how long. */
  readonly final: boolean;
}

/** What may pass (a registry that is away, a ConfigMap that is missing) is given up after this. */
export const START_PATIENCE_MS = 60_000;

const IMAGE_FINAL = new Set(['InvalidImageName', 'ErrImageNeverPull']);
const IMAGE_PASSING = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
]);
/** The registry answered, and said no. */
const IMAGE_REFUSED = /: not found|= NotFound|manifest unknown|denied|unauthorized|authorization failed/i;
const START_FAILED = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'CrashLoopBackOff',
  'PostStartHookError',
]);
/** What the runtime says of a container that never ran. */
const NEVER_RAN = new Set(['StartError', 'ContainerCannotRun']);
/** The kubelet came back and found nothing left of the container. */
const TRACELESS = new Set(['ContainerStatusUnknown', 'Unknown']);
const TAKEN_BY_KUBELET = new Set(['Evicted', 'Preempting', 'Terminated', 'NodeShutdown', 'Shutdown']);
/** Limits of the pod itself: its own doing, unlike a node that runs out. */
const OWN_DISK_LIMIT =
  /ephemeral local storage usage exceeds|usage of emptydir volume .* exceeds|exceeded its local ephemeral storage limit/i;

const problem = (exit: ExitReason, final: boolean, ...details: readonly string[]): PodProblem => ({
  exit,
  final,
  message: details.filter(Boolean).join(': '),
});

type Rule = (pod: PodView, ageMs: number) => PodProblem | null;

/** Causes before what they lead to: an evicted pod is deleted as well, and its container killed. */
const RULES: readonly Rule[] = [
  nodeGone,
  disrupted,
  takenByKubelet,
  memoryExceeded,
  deadlineExceeded,
  deletedOutside,
  imageMissing,
  neverStarted,
  processEnded,
  unschedulable,
  nodeSilent,
];

/**
 * Why a pod that nobody here ended is no use, told from its status alone; null for one that runs or is on its way.
 *
 * @param ageMs how long it has been waited for, on the monotonic clock; only what keeps it from starting is judged by it
 */
export function podProblem(pod: PodView, ageMs = 0): PodProblem | null {
  for (const rule of RULES) {
    const found = rule(pod, ageMs);
    if (found) return found;
  }
  return null;
}

function nodeGone(pod: PodView): PodProblem | null {
  const node = pod.nodeName ?? 'unknown';
  const disruption = pod.status.conditions['DisruptionTarget'];
  if (disruption?.status === 'True' && disruption.reason === 'DeletionByPodGC')
    return problem('node_lost', true, `the node ${node} is gone`, disruption.message);
  // The default way of an unreachable node: its pods are marked at once and evicted by taint five minutes later.
  if (disruption?.status === 'True' && disruption.reason === 'DeletionByTaintManager' && isUnreported(pod))
    return problem('node_lost', true, `the node ${node} does not report any more`, disruption.message);
  if (pod.status.reason === 'NodeLost' || pod.phase === 'Unknown')
    return problem('node_lost', true, `nothing is heard of the node ${node}`, pod.status.message);
  const traceless = ends(pod).find(({ terminated }) => TRACELESS.has(terminated.reason));
  if (traceless) return problem('node_lost', true, `the node ${node} lost the container`, traceless.terminated.message);
  return null;
}

function disrupted(pod: PodView): PodProblem | null {
  const disruption = pod.status.conditions['DisruptionTarget'];
  if (disruption?.status !== 'True') return null;
  if (OWN_DISK_LIMIT.test(`${disruption.message} ${pod.status.message}`)) return diskExceeded(pod);
  return problem('evicted', true, `the pod was evicted (${disruption.reason})`, disruption.message || pod.status.message);
}

function takenByKubelet(pod: PodView): PodProblem | null {
  const { reason, message } = pod.status;
  if (TAKEN_BY_KUBELET.has(reason))
    return OWN_DISK_LIMIT.test(message) ? diskExceeded(pod) : problem('evicted', true, `the pod was evicted (${reason})`, message);
  if (reason.startsWith('OutOf')) return problem('capacity', true, `the node had no room for the pod (${reason})`, message);
  if (reason === 'NodeAffinity' || reason === 'UnexpectedAdmissionError')
    return problem('infra', true, `the node refused the pod (${reason})`, message);
  return null;
}

function diskExceeded(pod: PodView): PodProblem {
  const message = pod.status.message || (pod.status.conditions['DisruptionTarget']?.message ?? '');
  return problem('disk', true, 'the pod wrote more than its disk holds', message);
}

function memoryExceeded(pod: PodView): PodProblem | null {
  const killed = ends(pod).find(({ terminated }) => terminated.reason === 'OOMKilled');
  return killed
    ? problem('oomkilled', true, `the kernel killed the container ${killed.name}: its pod used more memory than its limit`)
    : null;
}

function deadlineExceeded(pod: PodView): PodProblem | null {
  return pod.status.reason === 'DeadlineExceeded'
    ? problem('infra', true, "the pod outlived its activeDeadlineSeconds, the template's longest life", pod.status.message)
    : null;
}

function deletedOutside(pod: PodView): PodProblem | null {
  return pod.deleting ? problem('evicted', true, `the pod ${pod.name} was deleted by somebody else`) : null;
}

function imageMissing(pod: PodView, ageMs: number): PodProblem | null {
  for (const { waiting } of pod.status.containers) {
    if (!waiting || !(IMAGE_FINAL.has(waiting.reason) || IMAGE_PASSING.has(waiting.reason))) continue;
    const final = IMAGE_FINAL.has(waiting.reason) || IMAGE_REFUSED.test(waiting.message) || ageMs >= START_PATIENCE_MS;
    return problem('image_pull', final, `the image of the pod cannot be had (${waiting.reason})`, waiting.message);
  }
  return null;
}

function neverStarted(pod: PodView, ageMs: number): PodProblem | null {
  for (const { name, waiting, terminated } of pod.status.containers) {
    if (terminated && NEVER_RAN.has(terminated.reason))
      return problem('infra', true, `the container ${name} could not be started (${terminated.reason})`, terminated.message);
    if (waiting && START_FAILED.has(waiting.reason))
      return problem('infra', ageMs >= START_PATIENCE_MS, `the container ${name} cannot be started (${waiting.reason})`, waiting.message);
  }
  return null;
}

/** Orderly: its lease ended or it was told to close. Otherwise what ran in it is the likeliest cause, and would be again. */
function processEnded(pod: PodView): PodProblem | null {
  const [end] = ends(pod);
  if (!end && pod.phase !== 'Failed' && pod.phase !== 'Succeeded') return null;
  if (!end) return problem('infra', true, `the pod ended (${pod.status.reason || pod.phase})`, pod.status.message);
  const { exitCode, signal, message } = end.terminated;
  if (exitCode === 0) return problem('infra', true, 'the supervisor ended by itself: nobody renewed its lease, or it was told to close');
  const how = signal ? `signal ${signal}` : `exit code ${exitCode}`;
  return problem('kernel_lost', true, `the supervisor, process 1 of the pod, ended with ${how}`, message);
}

function unschedulable(pod: PodView): PodProblem | null {
  const scheduled = pod.status.conditions['PodScheduled'];
  if (scheduled?.status !== 'False' || scheduled.reason === 'SchedulingGated') return null;
  return problem('capacity', false, `no node can take the pod (${scheduled.reason})`, scheduled.message);
}

function nodeSilent(pod: PodView): PodProblem | null {
  return isUnreported(pod) ? problem('node_lost', false, `the node ${pod.nodeName ?? 'unknown'} does not report any more`) : null;
}

/** The control plane marks the pods of a node it hears nothing of as not ready, and unlike the kubelet gives no reason. */
function isUnreported({ phase, status }: PodView): boolean {
  const ready = status.conditions['Ready'];
  return phase === 'Running' && ready?.status === 'False' && ready.reason === '';
}

type Ended = ContainerStatusView & { readonly terminated: NonNullable<ContainerStatusView['terminated']> };

/** Init containers that did their work are no end. */
function ends({ status }: PodView): Ended[] {
  const ended = status.containers.filter((container): container is Ended => container.terminated !== null);
  return ended.length === status.containers.length || ended.some(({ terminated }) => terminated.exitCode !== 0)
    ? ended.toSorted((a, b) => Number(b.terminated.exitCode !== 0) - Number(a.terminated.exitCode !== 0))
    : [];
}
