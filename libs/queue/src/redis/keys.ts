import { createHash, randomBytes } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';

class PrefixedKeys {
  constructor(readonly prefix: string) {}

  /** Keys of one kind; every one of them carries its tenant. @throws EtudeError TENANT_MISSING where there is none */
  protected of(kind: string): (tenant: string, ...rest: string[]) => string {
    return (tenant, ...rest) => {
      if (tenant) return [this.prefix, kind, tenant, ...rest].join(':');
      throw new EtudeError('TENANT_MISSING', `a Redis key of kind "${kind}" was asked for without a tenant; pass the caller's tenant`);
    };
  }
}

/** Every Redis key of Etude, for one prefix. ARCHITECTURE.md has an overview. */
export class RedisKeys extends PrefixedKeys {
  /** Prefix of BullMQ's own keys. */
  readonly queues = `${this.prefix}:queue`;
  /** By tenant, method and request id. */
  readonly request = this.of('request');
  /** Outbox of one kind of work: `<tenant>/<id>` of records that are not over, by when the reconciler looks at them again. */
  readonly outbox = (kind: string): string => `${this.prefix}:outbox:${kind}`;

  readonly task = this.of('task');
  /** Ids of a tenant's tasks; ids are ordered by time, all scores are 0. */
  readonly tasks = this.of('tasks');
  readonly events = this.of('events');
  /** Channel on which writers say that a task's event stream grew. Carries no data. */
  readonly wake = this.of('wake');
  readonly rollout = (rolloutId: string): string => `${this.prefix}:rollout:${rolloutId}`;
  readonly journal = (rolloutId: string): string => `${this.prefix}:journal:${rolloutId}`;
  readonly rolloutOutbox = this.outbox('rollouts');
  /** Channel of `<tenant>/<task>`. */
  readonly cancel = `${this.prefix}:cancel`;

  readonly execution = this.of('execution');
  /** Channel that tells `<tenant>/<execution>` of each that has ended. */
  readonly endedExecutions = `${this.prefix}:ended`;
  /** Channel of `<tenant>/<execution>`. */
  readonly cancelExecution = `${this.prefix}:cancel:execution`;

  /** A caller's session. */
  readonly sandbox = this.of('sandbox');
  /** Ids of a tenant's sessions; ids are ordered by time, all scores are 0. */
  readonly sandboxes = this.of('sandboxes');
  readonly openSandboxes = this.of('open-sandboxes');
  /** `<tenant>/<sandbox>` of open sessions by when they expire. */
  readonly sandboxExpiry = `${this.prefix}:sandbox-expiry`;
  /** `<tenant>/<sandbox>` of the open sessions that a controller holds. */
  readonly heldSandboxes = (controllerId: string): string => `${this.prefix}:held-sandboxes:${controllerId}`;
  /** The last announcement of each sandbox controller, by id. */
  readonly controllers = `${this.prefix}:controllers`;
  /** Controllers by the time of their last heartbeat; 0 for one that said good-bye. */
  readonly controllersSeen = `${this.prefix}:controllers-seen`;

  /** Memory writes that were not applied yet, by write id. */
  readonly memoryOutbox = this.of('outbox:memory');
  readonly memoryOutboxIndex = this.outbox('memory');
  readonly consolidation = this.of('consolidation');
  readonly consolidationOutbox = this.outbox('consolidations');
  /** A receipt, and whose data it is about until that is gone. */
  readonly erasure = this.of('erasure');
  readonly erasureOutbox = this.outbox('erasures');
  /** The last erasure of each subject, by the digest of its name; records made before it are refused. */
  readonly erased = this.of('erased');
  /** The one move to another embedding model. */
  readonly reembedding = `${this.prefix}:reembedding`;

  /** Settings of agents, by name. */
  readonly agents = this.of('agents');
  /** Todos and loaded functions, by agent, user and session. None of them holds a ":". */
  readonly toolSession = this.of('tool-session');
  /** Answer to a call of a tool, by agent, user and request id. */
  readonly toolAnswer = this.of('tool-answer');
  /** A skill that somebody missed, and its draft until it is registered. */
  readonly wantedSkill = this.of('wanted-skill');
  /** Ids of a tenant's wishes by when they were made, ms since 1970. */
  readonly wantedSkills = this.of('wanted-skills');
  /** Ids of an agent's wishes that are not over. */
  readonly openWishes = this.of('open-wishes');
  readonly wantedSkillOutbox = this.outbox('wanted-skills');
}

/** Member of a set or message of a channel that covers all tenants. Neither a tenant nor an id holds a "/". */
export const memberOf = (tenant: string, id: string): string => `${tenant}/${id}`;

/** null where the text is no `<tenant>/<id>`. */
export function parseMember(member: string): { readonly tenant: string; readonly id: string } | null {
  const cut = member.indexOf('/');
  return cut < 1 ? null : { tenant: member.slice(0, cut), id: member.slice(cut + 1) };
}

/** A rollout and its owner. */
export interface RolloutAddress {
  readonly tenant: string;
  readonly taskId: string;
  readonly rolloutId: string;
}

/** Keys of a task and its rollout, in the order of `tasks.lua`. */
export function taskKeys(keys: RedisKeys, { tenant, taskId, rolloutId }: RolloutAddress): string[] {
  return [
    keys.task(tenant, taskId),
    keys.rollout(rolloutId),
    keys.journal(rolloutId),
    keys.events(tenant, taskId),
    keys.rolloutOutbox,
    keys.tasks(tenant),
  ];
}

let lastMs = 0;
let sequence = 0;

/**
 * A new id. Ids sort by the time they were made: a letter for the kind, 9 digits of milliseconds, 3 of a sequence inside the
 * millisecond (one process's ids are strictly ascending), and 50 random bits, all in base 36.
 */
export function newId(kind: string, nowMs = Date.now()): string {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    sequence = 0;
  } else if (++sequence >= 36 ** 3) {
    lastMs += 1;
    sequence = 0;
  }
  const random = BigInt(`0x${randomBytes(8).toString('hex')}`)
    .toString(36)
    .padStart(13, '0')
    .slice(-10);
  return `${kind}${lastMs.toString(36).padStart(9, '0')}${sequence.toString(36).padStart(3, '0')}${random}`;
}

/** Subject of an erasure: one agent, one user, or the whole tenant. */
export type ErasureSubject = { readonly agent: string } | { readonly user: string } | { readonly all: true };

/** Field of the hash `erased`. Holds a digest of the name, so that no name outlives its erasure. */
export function markOf(subject: ErasureSubject): string {
  if ('all' in subject) return 'tenant';
  return 'agent' in subject ? `agent:${digestOfName(subject.agent)}` : `user:${digestOfName(subject.user)}`;
}

/** Every mark that covers a record of this agent and user. */
export function marksOf(agent: string, user: string | null): string[] {
  return [markOf({ all: true }), markOf({ agent }), ...(user === null ? [] : [markOf({ user })])];
}

export function digestOfName(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}

/** Default retention of a task and its records after its end: 7 days. */
export const RETENTION_MS = 7 * 86_400_000;
