import { EtudeError } from '@etude/contracts/errors';
import {
  type ListTasksRequest,
  StepExplanationSchema,
  StepSchema,
  type Tasks,
  TaskStateSchema,
  UsageReportSchema,
} from '@etude/contracts/gen/etude/v1/tasks_pb';
import { rolloutIdOf, WorldId } from '@etude/contracts/ids';
import { LABELS_MAX, type TaskRecord, type TaskState as State } from '@etude/contracts/task';
import { toWire, wordOf } from '@etude/contracts/wire/messages';
import { invalidField, parseField } from '@etude/contracts/wire/validation';
import type { RedisWorlds } from '@etude/queue/worlds/worlds-store';
import { explainStep, stepDetail } from '@etude/domain/rollout/explain-rollout';
import { lastSandboxIn } from '@etude/domain/rollout/rollout-sandbox';
import type { Producer } from '@etude/queue/jobs/producer';
import { whileRedisAnswers } from '@etude/queue/redis/redis';
import type { RouterWorkSandboxes } from '@etude/queue/sandboxes/router-work-sandboxes';
import type { SpendStore } from '@etude/queue/spend/spend-store';
import { readJournal } from '@etude/queue/tasks/journal';
import { TaskStore } from '@etude/queue/tasks/task-store';
import { z } from 'zod';
import { requireUnbound } from '../calls/roles.js';
import { type CallContext, waitMs } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { askedPage, eventIdOf, optionalRequestId, taskIdOfName } from '../wire/names.js';
import { taskMessage, waitUntilAtRest, watchTask } from './task-events.js';
import { taskSpecOf } from './task-spec.js';

const Answer = z.string().regex(/\S/, 'must not be blank').max(20_000);
const Days = z.int().min(1).max(400);
const SANDBOX_END_MS = 2_000;
const PAGE = { max: 1_000, standard: 50 };

interface TaskDeps extends Pick<SkillDeps, 'memory' | 'settings' | 'checker' | 'templateFor'> {
  readonly tasks: TaskStore;
  readonly worlds: Pick<RedisWorlds, 'get'>;
  readonly producer: Producer;
  readonly workSandboxes: Pick<RouterWorkSandboxes, 'at'>;
  readonly spend: SpendStore;
}

/** `etude.v1.Tasks`. Each lookup uses the caller's tenant, so the task of another tenant is not found. */
export const taskCalls = {
  async submitTask(request, call, deps) {
    const requestId = optionalRequestId(request.requestId) ?? '';
    const spec = taskSpecOf(request.spec);
    await requireWorld(spec.labels['world'], call, deps);
    await deps.spend.requireBudget(call.tenant).catch(async (refusal: unknown) => {
      if (!(await deps.tasks.isKnown(call.tenant, requestId))) throw refusal;
    });
    const usual = spec.strategy ?? (await deps.settings.get(call.tenant, spec.agent)).strategy;
    const { record } = await deps.tasks.submit(call.tenant, spec, requestId, usual);
    return taskMessage(record);
  },

  async getTask({ name }, call, deps) {
    const taskId = await seenTask(name, call, deps.tasks);
    return taskMessage(found(await deps.tasks.get(call.tenant, taskId), name));
  },

  async listTasks(request, call, deps) {
    const { tenant, user } = call;
    const filter = { ...taskFilterOf(request), ...(user === undefined ? {} : { user }) };
    const { pageSize, after, tokenOf } = askedPage(request, PAGE, ['ListTasks', tenant, filter]);
    const { items: records, nextAfter } = await deps.tasks.list(tenant, { ...filter, pageSize, after: after ?? undefined });
    return { tasks: records.map(taskMessage), nextPageToken: tokenOf(nextAfter) };
  },

  /** A repeated cancellation has the same outcome, so the request id isn't stored. */
  async cancelTask({ name, requestId }, call, deps) {
    optionalRequestId(requestId);
    const taskId = await seenTask(name, call, deps.tasks);
    const task = found(await deps.tasks.requestCancel(call.tenant, taskId), name);
    if (task.state === 'cancelled') await endSandbox(task, deps);
    return taskMessage(task);
  },

  async getUsage({ days, agent }, { tenant }, { spend }) {
    const { tokensPerDay, usdPerDay } = spend.limitsOf(tenant);
    const rows = await spend.list(tenant, days === 0 ? 7 : parseField(Days, days, 'days'), agent || undefined);
    return toWire(UsageReportSchema, { rows, tokensPerDay, usdPerDay });
  },

  async answerTask({ name, key, text, requestId }, call, deps) {
    const answer = { key, text: parseField(Answer, text, 'text') };
    const done = await deps.tasks.answer(call.tenant, await seenTask(name, call, deps.tasks), answer, optionalRequestId(requestId) ?? '');
    return taskMessage(found(done, name));
  },

  async waitTask({ name, timeout, learning }, call, deps) {
    const { tenant, signal, deadlineMs } = call;
    const taskId = await seenTask(name, call, deps.tasks);
    const withinMs = waitMs(timeout, deadlineMs - Date.now());
    return taskMessage(found(await waitUntilAtRest(deps, { tenant, taskId }, { withinMs, learning }, signal), name));
  },

  async *watchTask({ name, resumeToken, text }, call, deps) {
    const { tenant, signal } = call;
    const taskId = await seenTask(name, call, deps.tasks);
    const afterId = eventIdOf(resumeToken, taskId);
    found(await deps.tasks.get(tenant, taskId), name);
    yield* watchTask(deps, { tenant, taskId, afterId, withText: text }, signal);
  },

  async getStep({ name, step }, call, { tasks, producer: { redis, keys } }) {
    const { tenant } = call;
    const taskId = await seenTask(name, call, tasks);
    const { spec } = found(await tasks.get(tenant, taskId), name);
    const entries = await whileRedisAnswers(redis, readJournal(redis, keys, rolloutIdOf(taskId)));
    return toWire(StepSchema, stepDetail(entries, step, spec.evaluator));
  },

  async explainStep({ name, step }, call, { tasks, producer: { redis, keys }, memory, ...deps }) {
    const { tenant } = call;
    const taskId = await seenTask(name, call, tasks);
    const rolloutId = rolloutIdOf(taskId);
    const [task, entries, { episodic, semantic, procedural }] = await Promise.all([
      tasks.get(tenant, taskId),
      whileRedisAnswers(redis, readJournal(redis, keys, rolloutId)),
      memory.open(),
    ]);
    const input = { task: found(task, name), rolloutId };
    return toWire(StepExplanationSchema, await explainStep(input, entries, step || null, { ...deps, episodic, semantic, procedural }));
  },
} satisfies Handlers<typeof Tasks, TaskDeps>;

function found(record: TaskRecord | null, name: string): TaskRecord {
  if (record) return record;
  const message = `There is no ${name}. It may belong to another tenant, or be deleted because its retention time is over.`;
  throw new EtudeError('NOT_FOUND', message, { metadata: { name } });
}

/** The id of the named task. @throws EtudeError NOT_FOUND for a task of another user, if the caller is bound to a user */
async function seenTask(name: string, { tenant, user }: CallContext, tasks: TaskStore): Promise<string> {
  const taskId = taskIdOfName(name);
  if (user !== undefined && (await tasks.get(tenant, taskId))?.spec.user !== user) return found(null, name).id;
  return taskId;
}

/** @throws EtudeError NOT_FOUND if the label `world` names no world of the tenant; PERMISSION_DENIED for bound callers */
async function requireWorld(world: string | undefined, call: CallContext, { worlds }: TaskDeps): Promise<void> {
  if (world === undefined) return;
  requireUnbound(call);
  if (WorldId.safeParse(world).success && (await worlds.get(call.tenant, world)) !== null) return;
  const message = `There is no world ${JSON.stringify(world.slice(0, 100))}. Create it, or leave out the label "world".`;
  throw new EtudeError('NOT_FOUND', message, { metadata: { field: 'spec.labels.world' } });
}

/** Ends the sandbox of a cancelled task that no worker holds. After a failure, the sandbox ends by itself some minutes later. */
async function endSandbox({ id, tenant }: TaskRecord, { producer: { redis, keys }, workSandboxes }: TaskDeps): Promise<void> {
  const name = lastSandboxIn(await whileRedisAnswers(redis, readJournal(redis, keys, rolloutIdOf(id))));
  if (name !== null)
    await workSandboxes
      .at(tenant, name)
      .close(AbortSignal.timeout(SANDBOX_END_MS))
      .catch(() => undefined);
}

/** Sorts labels, so that page tokens don't depend on the order of a caller's map. */
function taskFilterOf({ state, labels }: ListTasksRequest): { state?: State; labels?: Record<string, string> } {
  const entries = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length > LABELS_MAX) throw invalidField('labels', `must not have more than ${LABELS_MAX} entries`);
  const wanted = wordOf(TaskStateSchema, state, 'state') as State | undefined;
  return { ...(wanted ? { state: wanted } : {}), ...(entries.length > 0 ? { labels: Object.fromEntries(entries) } : {}) };
}
