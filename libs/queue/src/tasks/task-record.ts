import { Usage } from '@etude/contracts/task';
import type { StopReason, TaskRecord, TaskResult, TaskSpec, TaskState } from '@etude/contracts/task';

/** Reads a task's hash. null where there is none. */
export function readTaskRecord(tenant: string, id: string, fields: Record<string, string>): TaskRecord | null {
  if (!fields.state || !fields.spec) return null;
  return {
    id,
    tenant,
    spec: JSON.parse(fields.spec) as TaskSpec,
    state: fields.state as TaskState,
    stopReason: (fields.stopReason || null) as StopReason | null,
    result: json(fields.result) as TaskResult | null,
    usage: (json(fields.usage) ?? Usage.parse({})) as Usage,
    error: json(fields.error) as { code: string; message: string } | null,
    cancelRequested: fields.cancelRequested === '1',
    createdAt: Number(fields.createdAt),
    updatedAt: Number(fields.updatedAt),
    endedAt: fields.endedAt ? Number(fields.endedAt) : null,
    revision: Number(fields.revision ?? 0),
  };
}

/** The hash of a task that was just accepted; the script adds the times. */
export function newTaskFields(spec: TaskSpec, requestKey: string): string[] {
  return [
    'spec',
    JSON.stringify(spec),
    'state',
    'queued',
    'agent',
    spec.agent,
    'user',
    spec.user ?? '',
    'labels',
    JSON.stringify(spec.labels),
    'priority',
    String(spec.priority),
    'usage',
    JSON.stringify(Usage.parse({})),
    'requestKey',
    requestKey,
    'revision',
    '1',
  ];
}

/** Whether a task is listed under this filter. */
export function matches(
  state: string | null,
  labelsJson: string | null,
  filter: { state?: TaskState; labels?: Readonly<Record<string, string>> },
): boolean {
  if (!state) return false;
  if (filter.state && state !== filter.state) return false;
  const wanted = Object.entries(filter.labels ?? {});
  if (wanted.length === 0) return true;
  const labels = (json(labelsJson) ?? {}) as Record<string, string>;
  return wanted.every(([name, value]) => labels[name] === value);
}

/** null for a field that is missing or empty. */
function json(text: string | null | undefined): unknown {
  return text ? JSON.parse(text) : null;
}
