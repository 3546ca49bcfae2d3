import { EtudeError } from '@etude/contracts/errors';

/**
 * Every Redis key of Etude, for one prefix. All data of a tenant carries it in the key.
 *
 * @throws EtudeError TENANT_MISSING where a key is asked for without a tenant
 */
export class RedisKeys {
  constructor(readonly prefix: string) {}

  /** Prefix of BullMQ's own keys. */
  get queues(): string {
    return `${this.prefix}:queue`;
  }
  task(tenant: string, taskId: string): string {
    return this.#of('task', tenant, taskId);
  }
  /** Ids of a tenant's tasks; ids are ordered by time, all scores are 0. */
  tasks(tenant: string): string {
    return this.#of('tasks', tenant);
  }
  request(tenant: string, method: string, requestId: string): string {
    return this.#of('request', tenant, method, requestId);
  }
  events(tenant: string, taskId: string): string {
    return this.#of('events', tenant, taskId);
  }
  /** Channel on which writers say that a task's event stream grew. Carries no data. */
  wake(tenant: string, taskId: string): string {
    return this.#of('wake', tenant, taskId);
  }
  rollout(rolloutId: string): string {
    return `${this.prefix}:rollout:${rolloutId}`;
  }
  journal(rolloutId: string): string {
    return `${this.prefix}:journal:${rolloutId}`;
  }
  /** `<tenant>/<rollout>` by the time it was accepted. */
  get rolloutOutbox(): string {
    return `${this.prefix}:outbox:rollouts`;
  }
  /** `<tenant>/<write id>` by the time it was put. */
  get memoryOutboxIndex(): string {
    return `${this.prefix}:outbox:memory`;
  }
  memoryOutbox(tenant: string): string {
    return this.#of('outbox:memory', tenant);
  }
  execution(tenant: string, executionId: string): string {
    return this.#of('execution', tenant, executionId);
  }
  /** Channel of one process that waits for executions. */
  executionAnswers(waiter: string): string {
    return `${this.prefix}:answers:${waiter}`;
  }
  /** A caller's session. */
  sandbox(tenant: string, sandboxId: string): string {
    return this.#of('sandbox', tenant, sandboxId);
  }
  /** Ids of a tenant's sessions; ids are ordered by time, all scores are 0. */
  sandboxes(tenant: string): string {
    return this.#of('sandboxes', tenant);
  }
  /** Ids of those that are open. */
  openSandboxes(tenant: string): string {
    return this.#of('open-sandboxes', tenant);
  }
  /** `<tenant>/<sandbox>` of open sessions by when they expire. */
  get sandboxExpiry(): string {
    return `${this.prefix}:sandbox-expiry`;
  }
  /** `<tenant>/<sandbox>` of the open sessions that a controller holds. */
  heldSandboxes(controllerId: string): string {
    return `${this.prefix}:held-sandboxes:${controllerId}`;
  }
  /** What each sandbox controller announced last, by id. */
  get controllers(): string {
    return `${this.prefix}:controllers`;
  }
  /** Controllers by the time of their last heartbeat; 0 for one that said good-bye. */
  get controllersSeen(): string {
    return `${this.prefix}:controllers-seen`;
  }
  consolidation(tenant: string, runId: string): string {
    return this.#of('consolidation', tenant, runId);
  }
  /** A receipt, and whose data it is about until that is gone. */
  erasure(tenant: string, id: string): string {
    return this.#of('erasure', tenant, id);
  }
  /** `<tenant>/<erasure>` of those that are not over, by when the reconciler looks at them again. */
  get erasureOutbox(): string {
    return `${this.prefix}:outbox:erasures`;
  }
  /** When whose data was erased last, by digest of the name: what was made before is not written any more. */
  erased(tenant: string): string {
    return this.#of('erased', tenant);
  }
  /** Settings of agents, by name. */
  agents(tenant: string): string {
    return this.#of('agents', tenant);
  }
  /** The one move to another embedding model. */
  get reembedding(): string {
    return `${this.prefix}:reembedding`;
  }
  /** What an agent's session of tools keeps between calls: todos and loaded functions. Neither agents, users nor sessions hold a ":". */
  toolSession(tenant: string, agent: string, user: string, session: string): string {
    return this.#of('tool-session', tenant, agent, user, session);
  }
  /** What a call of a tool answered, by its request id. */
  toolAnswer(tenant: string, agent: string, user: string, requestId: string): string {
    return this.#of('tool-answer', tenant, agent, user, requestId);
  }
  /** Agents of a tenant by when they called last, ms since 1970. */
  agentsSeen(tenant: string): string {
    return this.#of('agents-seen', tenant);
  }
  /** A skill that somebody missed, and what was written for it until it is registered. */
  wantedSkill(tenant: string, id: string): string {
    return this.#of('wanted-skill', tenant, id);
  }
  /** Ids of a tenant's wishes by when they were made, ms since 1970. */
  wantedSkills(tenant: string): string {
    return this.#of('wanted-skills', tenant);
  }
  /** `<tenant>/<wish>` of those that are not over, by when the reconciler looks again. */
  get wantedSkillOutbox(): string {
    return `${this.prefix}:outbox:wanted-skills`;
  }
  /** Channel of `<tenant>/<task>`. */
  get cancel(): string {
    return `${this.prefix}:cancel`;
  }
  /** Channel of `<tenant>/<execution>`. */
  get cancelExecution(): string {
    return `${this.prefix}:cancel:execution`;
  }

  #of(kind: string, tenant: string, ...rest: string[]): string {
    if (!tenant)
      throw new EtudeError('TENANT_MISSING', `a Redis key of kind "${kind}" was asked for without a tenant; pass the caller's tenant`);
    return [this.prefix, kind, tenant, ...rest].join(':');
  }
}
