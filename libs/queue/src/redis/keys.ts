import { hash, randomBytes } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import { RolloutRun } from '@etude/contracts/queues';
import type { NamedRecord } from '@etude/contracts/memory-upkeep';

class PrefixedKeys {
  constructor(readonly prefix: string) {}

  /** Makes keys of one kind. Each contains its tenant. @throws EtudeError TENANT_MISSING for an empty tenant */
  protected of(kind: string): (tenant: string, ...rest: string[]) => string {
    return (tenant, ...rest) => {
      if (tenant) return [this.prefix, kind, tenant, ...rest].join(':');
      throw new EtudeError('TENANT_MISSING', `a Redis key of kind "${kind}" was asked for without a tenant; pass the caller's tenant`);
    };
  }
}

/** Every Redis key of Etude under one prefix. ARCHITECTURE.md has an overview. */
export class RedisKeys extends PrefixedKeys {
  /** Prefix of BullMQ's own keys. */
  readonly queues = `${this.prefix}:queue`;
  /** The digest of a request and the id of the record that it made, by tenant, method and request id. */
  readonly request = this.of('request');
  /** Outbox of one kind of work: `<tenant>/<id>` of unfinished records, scored by their last write or their next check. */
  readonly outbox = (kind: string): string => `${this.prefix}:outbox:${kind}`;

  readonly task = this.of('task');
  /** Ids of a tenant's tasks. Ids sort by time, so all scores are 0. */
  readonly tasks = this.of('tasks');
  readonly events = this.of('events');
  /** The line of waiting tasks: see `tasks/shared.lua`. */
  readonly line = `${this.prefix}:line`;
  readonly waitingTasks = this.of('waiting');
  readonly openTasks = this.of('open-tasks');
  readonly waitingSince = `${this.prefix}:waiting-since`;
  /** Number of a tenant's submits in the current minute. */
  readonly submits = this.of('submits');
  /** Per tenant: how many calls its limits refused on one day. */
  readonly refusals = (day: string): string => `${this.prefix}:refusals:${day}`;

  /** Stream of a tenant's audit log. */
  readonly audit = this.of('audit');
  /** Entries and counts of a tenant's refused calls on one day, by minute, caller and call. */
  readonly refusedCalls = this.of('refused-calls');
  /** Marks a change of the key file, by its digest, so that only one gateway writes it to the audit log. */
  readonly notedKeys = (digest: string): string => `${this.prefix}:noted-keys:${digest}`;

  /** Channel of a task, with an empty message for each change of its event stream. */
  readonly wake = this.of('wake');
  /** Channel of a task, with the text that its model writes, as JSON. */
  readonly text = this.of('text');
  readonly rollout = (rolloutId: string): string => `${this.prefix}:rollout:${rolloutId}`;
  readonly journal = (rolloutId: string): string => `${this.prefix}:journal:${rolloutId}`;
  readonly rolloutOutbox = this.outbox('rollouts');
  /** Rollouts whose learning is pending. */
  readonly learningOutbox = this.outbox('learning');
  /** Channel of a task, with an empty message when its cancel is requested. */
  readonly cancel = this.of('cancel');

  readonly execution = this.of('execution');
  /** Channel of an execution, with an empty message when its result is stored. */
  readonly endedExecution = this.of('ended');
  /** Channel of an execution, with an empty message when its cancel is requested. */
  readonly cancelExecution = this.of('cancel:execution');

  readonly sandbox = this.of('sandbox');
  /** Ids of a tenant's sandbox sessions. Ids sort by time, so all scores are 0. */
  readonly sandboxes = this.of('sandboxes');
  readonly openSandboxes = this.of('open-sandboxes');
  /** `<tenant>/<sandbox>` of the open sessions that a controller holds. */
  readonly heldSandboxes = (controllerId: string): string => `${this.prefix}:held-sandboxes:${controllerId}`;
  /** The last announcement of each sandbox controller, by id. */
  readonly controllers = `${this.prefix}:controllers`;
  /** Ids of controllers, scored by their last heartbeat; 0 for a controller that shut down. */
  readonly controllersSeen = `${this.prefix}:controllers-seen`;

  /** Memory writes that are not applied yet, by write id. */
  readonly memoryOutbox = this.of('outbox:memory');
  readonly memoryOutboxIndex = this.outbox('memory');
  readonly consolidation = this.of('consolidation');
  /** A tenant's consolidation runs. A member is the creation time and the id, so members sort by time. All scores are 0. */
  readonly consolidations = this.of('consolidations');
  /** Result lines of a consolidation run, by agent. */
  readonly consolidatedAgents = this.of('consolidated-agents');
  /** The model's answers in an unfinished consolidation run, by digest of the request. */
  readonly consolidationAnswers = this.of('consolidation-answers');
  readonly consolidationOutbox = this.outbox('consolidations');
  /** An erasure's receipt, with the name of its subject until the erasure has succeeded. */
  readonly erasure = this.of('erasure');
  readonly erasureOutbox = this.outbox('erasures');
  /** Time of each subject's last erasure, by `markOf`. Records made before that time are refused. */
  readonly erased = this.of('erased');
  /** The record of the move to another embedding model; there is at most one. */
  readonly reembedding = `${this.prefix}:reembedding`;

  /** How many facts a tenant has had, and how many model calls compared them. */
  readonly settling = this.of('settling');
  /** Held by the one worker that compares a tenant's facts. */
  readonly settlingLease = this.of('settling-lease');

  /** Model calls of one day, by agent, purpose and measure. */
  readonly spend = this.of('spend');

  readonly agents = this.of('agents');
  /** A tool session's todos, loaded functions and sandbox, by agent, user and session. None of the three holds a ":". */
  readonly toolSession = this.of('tool-session');
  /** Answer of a tool call, by agent, user and request id. */
  readonly toolAnswer = this.of('tool-answer');
  /** A wish: a request for a skill. It keeps the skill's draft until the skill is registered. */
  readonly wantedSkill = this.of('wanted-skill');
  /** Ids of a tenant's wishes, scored by their creation time, ms since 1970. */
  readonly wantedSkills = this.of('wanted-skills');
  /** Ids of an agent's unfinished wishes. */
  readonly openWishes = this.of('open-wishes');
  readonly wantedSkillOutbox = this.outbox('wanted-skills');

  /** Names of a tenant's worlds. The next listing drops the names of expired worlds. */
  readonly worlds = this.of('worlds');
  readonly world = this.of('world');
  /** Outcome of a move, by agent, user, the world's id and move id. None of the first three holds a ":". */
  readonly worldMove = this.of('world-move');
}

/** The keys of a consolidation run, in the order that `memory.lua` expects. */
export const consolidationKeys = (keys: RedisKeys, tenant: string, runId: string): [string, string, string] => [
  keys.consolidation(tenant, runId),
  keys.consolidatedAgents(tenant, runId),
  keys.consolidationAnswers(tenant, runId),
];

/** Names a record in a set that all tenants share. Neither a tenant nor an id holds a "/". */
export const memberOf = (tenant: string, id: string): string => `${tenant}/${id}`;

/** Parses `<tenant>/<id>`; null for another text. */
export function parseMember(member: string): { readonly tenant: string; readonly id: string } | null {
  const cut = member.indexOf('/');
  return cut < 1 ? null : { tenant: member.slice(0, cut), id: member.slice(cut + 1) };
}

export interface RolloutAddress {
  readonly tenant: string;
  readonly taskId: string;
  readonly rolloutId: string;
}

/** The keys of a task and its rollout, in the order that `tasks.lua` expects. */
export function taskKeys(keys: RedisKeys, { tenant, taskId, rolloutId }: RolloutAddress): string[] {
  return [
    keys.task(tenant, taskId),
    keys.rollout(rolloutId),
    keys.journal(rolloutId),
    keys.events(tenant, taskId),
    keys.rolloutOutbox,
    keys.tasks(tenant),
    keys.learningOutbox,
    keys.line,
    keys.waitingTasks(tenant),
    keys.openTasks(tenant),
    keys.waitingSince,
    `${keys.queues}:${RolloutRun.name}:`,
  ];
}

let lastUs = 0;

/**
 * Makes an id. Ids of one kind sort by time, strictly within one process. An id is a letter for the kind and 22 digits in base 36: first
 * 12 for the time in microseconds, which no two ids of a process share, then 10 random digits (about 50 bits).
 */
export function newId(kind: string): string {
  lastUs = Math.max(Date.now() * 1_000, lastUs + 1);
  const random = randomBytes(8).readBigUInt64BE().toString(36).padStart(13, '0').slice(-10);
  return `${kind}${lastUs.toString(36).padStart(12, '0')}${random}`;
}

/** An owner whose data is erased: one agent, one user, or the whole tenant. */
export type ErasedOwner = { readonly agent: string } | { readonly user: string } | { readonly all: true };
export type ErasureSubject = ErasedOwner | { readonly record: NamedRecord };

/** An owner's field in the hash `erased`. It holds a digest of the name, so that no name outlives its erasure. */
export function markOf(owner: ErasedOwner): string {
  if ('all' in owner) return 'tenant';
  return 'agent' in owner ? `agent:${hash('sha256', owner.agent)}` : `user:${hash('sha256', owner.user)}`;
}

/** The marks of every erasure that covers a record of this agent and user. */
export function marksOf(agent: string, user: string | null): string[] {
  return [markOf({ all: true }), markOf({ agent }), ...(user === null ? [] : [markOf({ user })])];
}

/** Default time for which a task and its records are kept after its end. */
export const RETENTION_MS = 7 * 86_400_000;
