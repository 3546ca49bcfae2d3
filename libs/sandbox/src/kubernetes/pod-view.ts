/** What this library needs of a logger; pino's shape. */
export interface KubeLogger {
  debug(context: object, message: string): void;
  info(context: object, message: string): void;
  warn(context: object, message: string): void;
  error(context: object, message: string): void;
}

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';

export interface PodConditionView {
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

export interface ContainerStatusView {
  readonly name: string;
  readonly waiting: { readonly reason: string; readonly message: string } | null;
  /** How it ended; the last end of a container that was started again. */
  readonly terminated: {
    readonly reason: string;
    readonly message: string;
    readonly exitCode: number;
    readonly signal: number | null;
  } | null;
}

export interface PodStatusView {
  readonly reason: string;
  readonly message: string;
  /** By type: PodScheduled, Ready, DisruptionTarget. */
  readonly conditions: Readonly<Record<string, PodConditionView>>;
  /** Init containers first. */
  readonly containers: readonly ContainerStatusView[];
}

/** What is kept of a pod: some hundred bytes instead of the object's ten kilobytes. */
export interface PodView {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ip: string | null;
  readonly nodeName: string | null;
  readonly phase: PodPhase;
  readonly deleting: boolean;
  /** By the API server's wall clock. */
  readonly createdAtMs: number;
  readonly status: PodStatusView;
}

interface RawState {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly terminated?: { readonly reason?: string; readonly message?: string; readonly exitCode?: number; readonly signal?: number };
}

interface RawContainer {
  readonly name?: string;
  readonly state?: RawState;
  readonly lastState?: RawState;
}

/** The part of the API's Pod that is read here. */
export interface RawPod {
  readonly metadata?: {
    readonly name?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Record<string, string>;
    readonly creationTimestamp?: string | null;
    readonly deletionTimestamp?: string | null;
  };
  readonly spec?: { readonly nodeName?: string };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly conditions?: ReadonlyArray<{ type: string; status: string; reason?: string; message?: string }>;
    readonly initContainerStatuses?: readonly RawContainer[];
    readonly containerStatuses?: readonly RawContainer[];
  };
}

const PHASES: ReadonlySet<string> = new Set<PodPhase>(['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown']);
const CONDITIONS = new Set(['PodScheduled', 'Ready', 'DisruptionTarget']);

/** @throws TypeError where it is no pod: name, uid or version are missing */
export function podView(raw: RawPod): PodView {
  const { metadata, status, spec } = raw;
  if (!metadata?.name || !metadata.uid || !metadata.resourceVersion) throw new TypeError('no pod: name, uid or resourceVersion is missing');
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    labels: metadata.labels ?? {},
    ip: status?.podIP || null,
    nodeName: spec?.nodeName || null,
    phase: PHASES.has(status?.phase ?? '') ? (status?.phase as PodPhase) : 'Unknown',
    deleting: Boolean(metadata.deletionTimestamp),
    createdAtMs: Date.parse(metadata.creationTimestamp ?? '') || 0,
    status: { reason: status?.reason ?? '', message: status?.message ?? '', conditions: conditionsOf(raw), containers: containersOf(raw) },
  };
}

function conditionsOf({ status }: RawPod): Record<string, PodConditionView> {
  const kept = (status?.conditions ?? []).filter((condition) => CONDITIONS.has(condition.type));
  return Object.fromEntries(
    kept.map(({ type, status: value, reason, message }) => [type, { status: value, reason: reason ?? '', message: message ?? '' }]),
  );
}

function containersOf({ status }: RawPod): ContainerStatusView[] {
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].map((raw) => {
    const { waiting } = raw.state ?? {};
    const terminated = raw.state?.terminated ?? raw.lastState?.terminated;
    return {
      name: raw.name ?? '',
      waiting: waiting ? { reason: waiting.reason ?? '', message: waiting.message ?? '' } : null,
      terminated: terminated
        ? {
            reason: terminated.reason ?? '',
            message: terminated.message ?? '',
            exitCode: terminated.exitCode ?? 0,
            signal: terminated.signal || null,
          }
        : null,
    };
  });
}
