import type { V1ContainerStatus, V1Pod, V1PodCondition } from '@kubernetes/client-node';

/** The part of pino's interface that this library needs. */
export interface KubeLogger {
  info(context: object, message: string): void;
  warn(context: object, message: string): void;
}

interface Told {
  readonly reason: string;
  readonly message: string;
}

export interface ContainerStatusView {
  readonly name: string;
  readonly waiting: Told | null;
  /** How the container ended. For a restarted container, its last end. */
  readonly terminated: (Told & { readonly exitCode: number; readonly signal: number | null }) | null;
}

/** The fields of a pod that are kept: some hundred bytes instead of ten kilobytes. */
export interface PodView {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ip: string | null;
  readonly nodeName: string | null;
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
