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
  consolidation(tenant: string, runId: string): string {
    return this.#of('consolidation', tenant, runId);
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
