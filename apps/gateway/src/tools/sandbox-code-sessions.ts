import { errorCode, EtudeError, unlessAborted } from '@etude/contracts/errors';
import { SandboxId, sandboxName } from '@etude/contracts/ids';
import { SandboxLimits, type SandboxSession } from '@etude/contracts/sandbox';
import { SandboxLost } from '@etude/domain/ports/sandboxes';
import { contentDigest } from '@etude/domain/skills/content-digest';
import type { CodeSession, CodeSessions } from '@etude/domain/tools/execute-in-session';
import type { SessionKey } from '@etude/domain/tools/tool-definition';
import type { RedisToolSessions } from '@etude/queue/agents/tool-sessions';
import { isOpenedBy, RouterWorkSandboxes } from '@etude/queue/sandboxes/router-work-sandboxes';
import type { SandboxRouter } from '@etude/queue/sandboxes/sandbox-router';
import type { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { sandboxIdOfName } from '../wire/names.js';

interface CodeSessionParts {
  readonly router: SandboxRouter;
  readonly sandboxes: Pick<SandboxSessionStore, 'get' | 'openCount'>;
  readonly sessions: Pick<RedisToolSessions, 'readSandbox' | 'keepSandbox' | 'ownSandbox'>;
  /** Tools open no sandbox while the tenant has this many open, including those that callers opened. */
  readonly openMax: number;
}

/** Runs calls with the same name one at a time, in order, within this process. */
export class SessionTurns {
  /** By name: resolves after the last call of this name. */
  readonly #last = new Map<string, Promise<void>>();

  /** @throws the signal's reason, if it aborts before the turn comes */
  async take<T>(name: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const turn = this.#last.get(name) ?? Promise.resolve();
    const over = Promise.withResolvers<void>();
    const last = turn.then(() => over.promise);
    this.#last.set(name, last);
    try {
      await unlessAborted(turn, signal);
      return await work();
    } finally {
      over.resolve();
      if (this.#last.get(name) === last) this.#last.delete(name);
    }
  }
}

interface Unavailable {
  readonly unavailable: string;
}

/** Gives tool sessions sandboxes of `etude.v1.Sandboxes`, with the same tenant, quota, limits and lifetime. */
export class SandboxCodeSessions implements CodeSessions {
  readonly #turns = new SessionTurns();
  readonly #work: RouterWorkSandboxes;

  constructor(private readonly parts: CodeSessionParts) {
    this.#work = new RouterWorkSandboxes(parts.router, 'code_interpreter');
  }

  async open(key: SessionKey, template: string | undefined, signal: AbortSignal): Promise<CodeSession | Unavailable> {
    const off = this.parts.router.whyOff;
    if (off !== null) return { unavailable: withoutStop(off) };
    const named = await this.#named(key);
    return named ? this.#session(named, isOpenedBy(named, 'code_interpreter')) : this.#opened(key, template ?? 'default', signal);
  }

  async #opened(key: SessionKey, template: string, signal: AbortSignal): Promise<CodeSession | Unavailable> {
    const { sandboxes, sessions, openMax } = this.parts;
    const { tenant } = key;
    const last = await sessions.readSandbox(key);
    const known = last === null ? null : await sandboxes.get(tenant, last);
    if (known?.session.state === 'open') return this.#session(known.session, true);
    const open = await sandboxes.openCount(tenant);
    if (open >= openMax) return { unavailable: `${open} sandboxes are open, and tools may open ${openMax} at most; close one` };
    const made = await this.#made(key, last, template, signal);
    if (typeof made !== 'string') return made;
    const outcome = await sessions.keepSandbox(key, last, made);
    if (outcome === 'kept') return { ...this.#session({ id: made, tenant, template }, true), isReplaced: last !== null };
    if (outcome === 'replaced') await this.#work.at(tenant, sandboxName(made)).close(signal);
    throw new EtudeError('SANDBOX_UNAVAILABLE', `The sandbox of session ${key.session} ended while it was being opened. Call again.`);
  }

  /** Opens the session's next sandbox after `last`. All calls use the same request id, so they get the same sandbox. @returns the sandbox's id */
  async #made(key: SessionKey, last: string | null, template: string, signal: AbortSignal): Promise<string | Unavailable> {
    const { tenant, agent, user, session } = key;
    for (let lost = 0; ; lost += 1) {
      const requestId = `tool-${contentDigest([tenant, agent, user, session, last, template, lost]).slice(0, 40)}`;
      try {
        const { name } = await this.#work.open({ tenant, requestId, template, limits: SandboxLimits.parse({}) }, signal);
        return sandboxIdOfName(name);
      } catch (error) {
        // An earlier call opened this sandbox but didn't record it. It has ended unused.
        if (error instanceof SandboxLost) continue;
        if (errorCode(error) !== 'SANDBOX_CAPACITY') throw error;
        return { unavailable: withoutStop((error as Error).message) };
      }
    }
  }

  /**
   * The sandbox whose id is the session's name. Its first use reserves it for this agent and user.
   *
   * @throws EtudeError FAILED_PRECONDITION if the sandbox has ended, or belongs to another agent or user
   */
  async #named(key: SessionKey): Promise<SandboxSession | null> {
    const { tenant, session } = key;
    if (!SandboxId.safeParse(session).success) return null;
    const found = (await this.parts.sandboxes.get(tenant, session))?.session ?? null;
    if (found === null) return null;
    // A sandbox that a tool session just opened has no recorded owner yet. Other sandboxes belong to the whole tenant at first.
    const mayBegin = !isOpenedBy(found, 'code_interpreter') && !key.isBound;
    const outcome = found.state === 'open' ? await this.parts.sessions.ownSandbox(key, session, mayBegin) : 'ended';
    if (outcome === 'own') return found;
    const state = found.state === 'open' ? 'closed' : found.state;
    const why =
      outcome === 'ended' ? `is ${state}; name an open sandbox` : 'is used by another agent or user; name a sandbox that you opened';
    throw new EtudeError('FAILED_PRECONDITION', `${sandboxName(session)} ${why}, or another session.`);
  }

  /** @param isOwn whether a tool session opened the sandbox; a caller's sandbox keeps the caller's lifetime */
  #session({ id, tenant, template }: Pick<SandboxSession, 'id' | 'tenant' | 'template'>, isOwn: boolean): CodeSession {
    const sandbox = this.#work.at(tenant, sandboxName(id), isOwn);
    const inTurn: CodeSession['inTurn'] = (work, signal) =>
      this.#turns.take(sandbox.name, work, signal).catch((error: unknown) => {
        if (!(error instanceof SandboxLost)) throw error;
        const message = `The session's sandbox was lost (${error.why}), with its variables and files. The next call opens a new sandbox.`;
        throw new EtudeError('FAILED_PRECONDITION', message);
      });
    return { sandbox, template, isReplaced: false, inTurn };
  }
}

const withoutStop = (message: string) => message.replace(/\.$/, '');
