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

const IMAGE_FINAL = /^(InvalidImageName|ErrImageNeverPull)$/;
const IMAGE_PASSING = /^(ErrImagePull|ImagePullBackOff|ImageInspectError|RegistryUnavailable|SignatureValidationFailed)$/;
/** The registry answered, and said no. */
const IMAGE_REFUSED = /: not found|= NotFound|manifest unknown|denied|unauthorized|authorization failed/i;
const START_FAILED = /^(CreateContainerConfigError|CreateContainerError|RunContainerError|CrashLoopBackOff|PostStartHookError)$/;
/** What the runtime says of a container that never ran. */
const NEVER_RAN = /^(StartError|ContainerCannotRun)$/;
/** The kubelet came back and found nothing left of the container. */
const TRACELESS = /^(ContainerStatusUnknown|Unknown)$/;
const TAKEN_BY_KUBELET = /^(Evicted|Preempting|Terminated|NodeShutdown|Shutdown)$/;
/** Limits of the pod itself: its own doing, unlike a node that runs out. */
const OWN_DISK_LIMIT =
  /ephemeral local storage usage exceeds|usage of emptydir volume .* exceeds|exceeded its local ephemeral storage limit/i;

/** What is seen of a pod, what that means, and what is told. */
type Rule = readonly [seen: boolean, exit: ExitReason, final: boolean, what: string, detail?: string | undefined];

/**
 * Why a pod that nobody here ended is no use, told from its status alone; null for one that runs or is on its way.
 *
 * @param ageMs how long it has been waited for, on the monotonic clock; only what keeps it from starting is judged by it
 */
export function podProblem(pod: PodView, ageMs = 0): PodProblem | null {
  // Causes before what they lead to: an evicted pod is deleted as well, and its container killed.
  for (const [seen, exit, final, what, detail] of [...lostRules(pod), ...startRules(pod, ageMs), ...endRules(pod)])
    if (seen) return { exit, final, message: detail ? `${what}: ${detail}` : what };
  return null;
}

function lostRules(pod: PodView): readonly Rule[] {
  const { reason, message, conditions } = pod.status;
  const node = `the node ${pod.nodeName ?? 'unknown'}`;
  const target = conditions['DisruptionTarget'];
  const disruption = target?.status === 'True' ? target : { reason: '', message: '' };
  const traceless = ends(pod).find(({ terminated }) => TRACELESS.test(terminated.reason));
  const taken = disruption.reason || (TAKEN_BY_KUBELET.test(reason) ? reason : '');
  const killed = ends(pod).find(({ terminated }) => terminated.reason === 'OOMKilled');
  return [
    [disruption.reason === 'DeletionByPodGC', 'node_lost', true, `${node} is gone`, disruption.message],
    // The default way of an unreachable node: its pods are marked at once and evicted by taint five minutes later.
    [
      disruption.reason === 'DeletionByTaintManager' && isUnreported(pod),
      'node_lost',
      true,
      `${node} does not report any more`,
      disruption.message,
    ],
    [reason === 'NodeLost' || pod.phase === 'Unknown', 'node_lost', true, `nothing is heard of ${node}`, message],
    [traceless !== undefined, 'node_lost', true, `${node} lost the container`, traceless?.terminated.message],
    [
      taken !== '' && OWN_DISK_LIMIT.test(`${disruption.message} ${message}`),
      'disk',
      true,
      'the pod wrote more than its disk holds',
      message || disruption.message,
    ],
    [taken !== '', 'evicted', true, `the pod was evicted (${taken})`, disruption.message || message],
    [reason.startsWith('OutOf'), 'capacity', true, `the node had no room for the pod (${reason})`, message],
    [reason === 'NodeAffinity' || reason === 'UnexpectedAdmissionError', 'infra', true, `the node refused the pod (${reason})`, message],
    [killed !== undefined, 'oomkilled', true, `the kernel killed the container ${killed?.name}: its pod used more memory than its limit`],
    [reason === 'DeadlineExceeded', 'infra', true, "the pod outlived its activeDeadlineSeconds, the template's longest life", message],
    [pod.deleting, 'evicted', true, `the pod ${pod.name} was deleted by somebody else`],
  ];
}

function startRules({ status }: PodView, ageMs: number): Rule[] {
  const patient = ageMs < START_PATIENCE_MS;
  return status.containers.flatMap(({ name, waiting, terminated }): Rule[] => {
    const { reason = '', message = '' } = waiting ?? {};
    const final = IMAGE_FINAL.test(reason) || IMAGE_REFUSED.test(message) || !patient;
    const neverRan = terminated !== null && NEVER_RAN.test(terminated.reason);
    return [
      [
        IMAGE_FINAL.test(reason) || IMAGE_PASSING.test(reason),
        'image_pull',
        final,
        `the image of the pod cannot be had (${reason})`,
        message,
      ],
      [neverRan, 'infra', true, `the container ${name} could not be started (${terminated?.reason})`, terminated?.message],
      [START_FAILED.test(reason), 'infra', !patient, `the container ${name} cannot be started (${reason})`, message],
    ];
  });
}

/** An end with 0 is orderly. Otherwise what ran in it is the likeliest cause, and would be again. */
function endRules(pod: PodView): readonly Rule[] {
  const { phase, nodeName, status } = pod;
  const over = phase === 'Failed' || phase === 'Succeeded';
  const end = ends(pod)[0]?.terminated;
  const how = end?.signal ? `signal ${end.signal}` : `exit code ${end?.exitCode}`;
  const scheduled = status.conditions['PodScheduled'];
  const unschedulable = scheduled?.status === 'False' && scheduled.reason !== 'SchedulingGated';
  return [
    [over && !end, 'infra', true, `the pod ended (${status.reason || phase})`, status.message],
    [end?.exitCode === 0, 'infra', true, 'the supervisor ended by itself: nobody renewed its lease, or it was told to close'],
    [end !== undefined, 'kernel_lost', true, `the supervisor, process 1 of the pod, ended with ${how}`, end?.message],
    [unschedulable, 'capacity', false, `no node can take the pod (${scheduled?.reason})`, scheduled?.message],
    [isUnreported(pod), 'node_lost', false, `the node ${nodeName ?? 'unknown'} does not report any more`],
  ];
}

/** The control plane marks the pods of a node it hears nothing of as not ready, and unlike the kubelet gives no reason. */
function isUnreported({ phase, status }: PodView): boolean {
  const ready = status.conditions['Ready'];
  return phase === 'Running' && ready?.status === 'False' && ready.reason === '';
}

type Ended = ContainerStatusView & { readonly terminated: NonNullable<ContainerStatusView['terminated']> };

/** Containers that have ended, failed ones first. Init containers that did their work are no end. */
function ends({ status }: PodView): Ended[] {
  const ended = status.containers.filter((container): container is Ended => container.terminated !== null);
  return ended.length === status.containers.length || ended.some(({ terminated }) => terminated.exitCode !== 0)
    ? ended.toSorted((a, b) => Number(b.terminated.exitCode !== 0) - Number(a.terminated.exitCode !== 0))
    : [];
}
