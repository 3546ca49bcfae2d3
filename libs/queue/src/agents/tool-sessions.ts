import { SkillDependency } from '@etude/contracts/skill-proof';
import { contentDigest } from '@etude/domain/skills/content-digest';
import type { SkillReader } from '@etude/domain/skills/life/find-skill';
import type { SessionKey, Todo, ToolOutcome, ToolSession, ToolSessions } from '@etude/domain/tools/tool-definition';
import { TodoItem } from '@etude/domain/tools/tool-definition';
import { z } from 'zod';
import { requestIdTaken } from '../jobs/durable-work.js';
import { parseStored } from '../jobs/job-end.js';
import { RedisStore } from '../redis/redis.js';

/** A session expires this long after its last write. */
export const SESSION_KEPT_MS = 7 * 86_400_000;
/** How long an answer is kept for repeats of the call: as long as the result of an execution. */
const ANSWER_KEPT_MS = 3_600_000;

const Todos = z.array(TodoItem);
/** The kept answer of a tool call, with the digest of the call and the time in ms since 1970. */
interface Answer {
  readonly digest: string;
  readonly outcome: ToolOutcome;
  readonly at: number;
}

/** Prefix of the hash fields that hold loaded functions. */
const LOADED = 'loaded:';

/** `ToolSessions` in Redis: one hash for each session. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class RedisToolSessions extends RedisStore implements ToolSessions {
  async read(key: SessionKey): Promise<ToolSession> {
    const fields = await this.ask(this.redis.hgetall(this.#of(key)));
    const todos = parseStored(Todos, JSON.parse(fields['todos'] ?? '[]'), 'INTERNAL', `the todos of session ${key.session}`);
    return { todos, loaded: loadedOf(fields, key) };
  }

  async putTodos(key: SessionKey, todos: readonly Todo[]): Promise<void> {
    await this.#put(key, { todos: JSON.stringify(todos) });
  }

  async load(key: SessionKey, pins: readonly SkillDependency[]): Promise<readonly SkillDependency[]> {
    await this.#put(key, Object.fromEntries(pins.map((pin) => [`${LOADED}${pin.name}`, JSON.stringify(pin)])));
    return (await this.read(key)).loaded;
  }

  /** The sandbox that a session opened last; null if the session opened none. */
  readSandbox(key: SessionKey): Promise<string | null> {
    return this.ask(this.redis.hget(this.#of(key), 'sandbox'));
  }

  /**
   * Records the sandbox that a session opened. Call it before using the sandbox, with `last` from `readSandbox`. `replaced`: another call has
   * recorded a different sandbox, so the caller must close this one. `taken`: the sandbox belongs to another agent or user.
   */
  keepSandbox(key: SessionKey, last: string | null, sandbox: string): Promise<'kept' | 'replaced' | 'ended' | 'taken'> {
    const keys = [this.#of(key), this.keys.sandbox(key.tenant, sandbox)];
    return this.run('keepToolSandbox', keys, [last ?? '', sandbox, ownerOf(key), SESSION_KEPT_MS]);
  }

  /** Makes the agent and user of `key` the owner of a sandbox. `taken`: it has another owner, or it has none and `mayBegin` is false. */
  async ownSandbox(key: SessionKey, sandbox: string, mayBegin: boolean): Promise<'own' | 'ended' | 'taken'> {
    return this.run('ownToolSandbox', [this.keys.sandbox(key.tenant, sandbox)], [ownerOf(key), mayBegin ? '1' : '0']);
  }

  async #put(key: SessionKey, fields: Readonly<Record<string, string>>): Promise<void> {
    const name = this.#of(key);
    const write = this.redis.multi().hsetnx(name, 'createdAt', Date.now());
    await this.ask(write.hset(name, fields).pexpire(name, SESSION_KEPT_MS).exec());
  }

  #of({ tenant, agent, user, session }: SessionKey): string {
    return this.keys.toolSession(tenant, agent, user ?? '', session);
  }
}

/** Names of agents and users contain no ":". */
const ownerOf = ({ agent, user }: SessionKey) => `${agent}:${user ?? ''}`;

function loadedOf(fields: Readonly<Record<string, string>>, { session }: SessionKey): readonly SkillDependency[] {
  return Object.entries(fields)
    .filter(([field]) => field.startsWith(LOADED))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, text]) => parseStored(SkillDependency, JSON.parse(text), 'INTERNAL', `the functions loaded in session ${session}`));
}

export interface RepeatableCall extends SkillReader {
  readonly requestId: string;
  /** What the call asks for. A repeat with the same request id must have the same content. */
  readonly content: unknown;
}

/** Keeps the answers of tool calls for repeats. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class ToolCalls extends RedisStore {
  /** The kept answer of a call, or null. @throws EtudeError ALREADY_EXISTS if its request id was used with other content */
  async answered(call: RepeatableCall): Promise<ToolOutcome | null> {
    const text = await this.ask(this.redis.get(this.#of(call)));
    if (!text) return null;
    const { digest, outcome } = JSON.parse(text) as Answer;
    if (digest === contentDigest(call.content)) return outcome;
    throw requestIdTaken(call.requestId, 'another call', {});
  }

  /** Keeps the answer of a call, unless an answer is kept already. */
  async keep(call: RepeatableCall, outcome: ToolOutcome): Promise<void> {
    const text = JSON.stringify({ digest: contentDigest(call.content), outcome, at: Date.now() } satisfies Answer);
    await this.ask(this.redis.set(this.#of(call), text, 'PX', ANSWER_KEPT_MS, 'NX'));
  }

  #of({ tenant, agent, user, requestId }: RepeatableCall): string {
    return this.keys.toolAnswer(tenant, agent, user ?? '', requestId);
  }
}
