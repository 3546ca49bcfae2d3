import {
  type Learning,
  type StopReason,
  type TaskRecord,
  type TaskResult,
  type TaskSpec,
  type TaskState,
  Usage,
} from '@etude/contracts/task';

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
    error: json(fields.error) as TaskRecord['error'],
    learning: {
      state: (fields.learning ?? 'none') as Learning['state'],
      usage: (json(fields.learningUsage) ?? Usage.parse({})) as Usage,
      error: json(fields.learningError) as Learning['error'],
    },
    cancelRequested: fields.cancelRequested === '1',
    question: openQuestion(fields.state, fields.question),
    createdAt: Number(fields.createdAt),
    updatedAt: Number(fields.updatedAt),
    endedAt: fields.endedAt ? Number(fields.endedAt) : null,
    revision: Number(fields.revision ?? 0),
    ...(fields.traceparent ? { traceparent: fields.traceparent } : {}),
  };
}

/** The hash of a new task, as a flat list. The script adds the times. */
export function newTaskFields(spec: TaskSpec, requestKey: string, traceparent: string | undefined): string[] {
  const fields = {
    spec: JSON.stringify(spec),
    state: 'queued',
    agent: spec.agent,
    user: spec.user ?? '',
    labels: JSON.stringify(spec.labels),
    priority: spec.priority,
    usage: JSON.stringify(Usage.parse({})),
    requestKey,
    revision: 1,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
  return Object.entries(fields).flat().map(String);
}

export function openQuestion(state: string, question: string | null | undefined): TaskRecord['question'] {
  return state === 'input_required' ? (json(question) as TaskRecord['question']) : null;
}

export function json(text: string | null | undefined): unknown {
  return text ? JSON.parse(text) : null;
}
