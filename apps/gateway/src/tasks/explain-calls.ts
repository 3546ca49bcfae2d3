import { StepExplanationSchema, type Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { rolloutIdOf } from '@etude/contracts/ids';
import { toWire } from '@etude/contracts/wire/messages';
import { explainStep } from '@etude/domain/rollout/explain-rollout';
import type { Producer } from '@etude/queue/jobs/producer';
import { whileRedisAnswers } from '@etude/queue/redis/redis';
import { readJournal } from '@etude/queue/tasks/journal';
import type { TaskStore } from '@etude/queue/tasks/task-store';
import type { Handlers } from '../calls/calls.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { taskIdOfName } from '../wire/names.js';
import { found } from './task-calls.js';

export interface ExplainCallDeps extends Pick<SkillDeps, 'memory' | 'settings' | 'checker' | 'templateFor'> {
  readonly tasks: TaskStore;
  readonly producer: Producer;
}

/** The call of `etude.v1.Tasks` that reads memory. */
export const explainCalls = {
  async explainStep({ name, step }, { tenant }, { tasks, producer: { redis, keys }, memory, ...deps }) {
    const taskId = taskIdOfName(name);
    const rolloutId = rolloutIdOf(taskId);
    const [task, entries, { episodic, semantic, procedural }] = await Promise.all([
      tasks.get(tenant, taskId),
      whileRedisAnswers(redis, readJournal(redis, keys, rolloutId)),
      memory.open(),
    ]);
    const input = { task: found(task, name), rolloutId };
    return toWire(StepExplanationSchema, await explainStep(input, entries, step || null, { ...deps, episodic, semantic, procedural }));
  },
} satisfies Handlers<typeof Tasks, ExplainCallDeps>;
