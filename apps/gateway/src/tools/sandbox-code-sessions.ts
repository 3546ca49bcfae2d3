import { randomUUID } from 'node:crypto';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { SandboxId, sandboxName } from '@etude/contracts/ids';
import { type SandboxSession, SESSION_TTL_MS_DEFAULT } from '@etude/contracts/sandbox-session';
import type { CodeSession, CodeSessions } from '@etude/domain/tools/code-sessions';
import type { SessionKey } from '@etude/domain/tools/tool-ports';
import type { RedisToolSessions, ToolSandboxClaim } from '@etude/queue/agents/tool-sessions';
import type { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import type { CallContext } from '../calls/caller.js';
import { sandboxIdOfName } from '../wire/names.js';
import { runCell, type RunCellDeps } from './run-cell.js';
import { SessionTurns } from './session-turns.js';

/** After its last call. */
const TTL_MS = SESSION_TTL_MS_DEFAULT;
const FILES_MAX = 1_000;
/** Of a path where there is none, and of one that can't be a path. */
const NO_FILE: ReadonlySet<string> = new Set(['NOT_FOUND', 'INVALID_ARGUMENT']);
/** No sandbox came of a request that was answered so, and none will. */
const REFUSED: ReadonlySet<string> = new Set([
  'INVALID_ARGUMENT',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'FAILED_PRECONDITION',
  'SANDBOX_CAPACITY',
]);
const LABEL = 'opened-by';
const LABELS = { [LABEL]: 'code_interpreter' };
/** A sandbox that ends, or whose session is erased, while it is being opened. */
const ATTEMPTS_MAX = 5;

export interface CodeSessionParts extends RunCellDeps {
  readonly sandboxes: Pick<SandboxSessionStore, 'get' | 'openCount'>;
  readonly sessions: Pick<RedisToolSessions, 'readSandbox' | 'claimSandbox' | 'dropClaim' | 'keepSandbox' | 'ownSandbox'>;
  /** Sandboxes of a tenant, whoever opened them, beyond which tools open no other. */
  readonly openMax: number;
}

/** Sandboxes of sessions of tools are those of `etude.v1.Sandboxes`: the same tenant, quota, limits and ends. */
export class SandboxCodeSessions implements CodeSessions {
  /** Of calls at once one opens the sandbox and the others find it, so that they take no room for several in between. */
  readonly #openings = new SessionTurns(Infinity);
  readonly #turns = new SessionTurns();

  constructor(private readonly parts: CodeSessionParts) {}

  async open(key: SessionKey, template: string | undefined, signal: AbortSignal): Promise<CodeSession | { readonly unavailable: string }> {
    const off = this.parts.router.whyOff;
    if (off !== null) return { unavailable: withoutStop(off) };
    const context: CallContext = { tenant: key.tenant, name: key.agent, roles: [], signal, deadlineMs: Infinity };
    const named = await this.#named(key);
    if (named !== null) return this.#session(named, context);
    const name = [key.tenant, key.agent, key.user ?? '', key.session].join(':');
    return this.#openings.take(name, () => this.#opened(key, template ?? 'default', context), signal);
  }

  /** The session's sandbox, opened where there is none or the last one has ended. */
  async #opened(key: SessionKey, template: string, context: CallContext): Promise<CodeSession | { readonly unavailable: string }> {
    const { sandboxes, sessions, openMax } = this.parts;
    let over: string | null = null;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      context.signal.throwIfAborted();
      const { requestId, sandbox } = await sessions.readSandbox(key);
      const known = sandbox === null ? null : await sandboxes.get(key.tenant, sandbox);
      if (known?.session.state === 'open') {
        return this.#session(known.session, context);
      }
      if (sandbox !== null) over = requestId;
      // Who claimed has counted.
      const open = requestId === null || requestId === over ? await sandboxes.openCount(key.tenant) : 0;
      if (open >= openMax) return { unavailable: `${open} sandboxes are open, and with ${openMax} the tools open no other; close one` };
      const claim = await sessions.claimSandbox(key, over, { requestId: `tool-${randomUUID()}`, template });
      const opened = await this.#create(key, claim, context);
      if ('unavailable' in opened) return opened;
      const outcome = await sessions.keepSandbox(key, claim.requestId, opened.id);
      if (outcome === 'kept') return { ...this.#session(opened, context), isReplaced: claim.isReplaced };
      if (outcome === 'replaced') await this.#close(opened.id, context);
      else over = claim.requestId;
    }
    throw new EtudeError('SANDBOX_UNAVAILABLE', `The sandbox of session ${key.session} ended ${ATTEMPTS_MAX} times while it was opened.`);
  }

  /**
   * The sandbox whose id the session's name is. From its first use it is that of the agent and user.
   *
   * @throws EtudeError FAILED_PRECONDITION where it has ended, or is another agent's or user's
   */
  async #named(key: SessionKey): Promise<SandboxSession | null> {
    const { tenant, session } = key;
    if (!SandboxId.safeParse(session).success) return null;
    const found = (await this.parts.sandboxes.get(tenant, session))?.session ?? null;
    if (found === null) return null;
    // What a session of tools has just opened is nobody's for a moment.
    const mayBegin = found.labels[LABEL] !== LABELS[LABEL];
    const outcome = found.state === 'open' ? await this.parts.sessions.ownSandbox(key, session, mayBegin) : 'ended';
    if (outcome === 'own') return found;
    const state = found.state === 'open' ? 'closed' : found.state;
    const why = outcome === 'ended' ? `is ${state}; name an open sandbox` : 'is used by another agent or user; name one that you opened';
    throw new EtudeError('FAILED_PRECONDITION', `${sandboxName(session)} ${why}, or another session.`);
  }

  /** One that its caller opened has the time that its caller gave it. */
  async #renew(id: string, context: CallContext): Promise<void> {
    const session = (await this.parts.sandboxes.get(context.tenant, id))?.session;
    if (session?.state !== 'open' || session.labels[LABEL] !== LABELS[LABEL] || session.expiresAt - Date.now() > TTL_MS / 2) return;
    const request = { name: sandboxName(id), ttl: durationFromMs(TTL_MS) };
    await this.parts.router.ask(id, context, (client, settings) => client.renewSandbox(request, settings));
  }

  async #create(
    key: SessionKey,
    { requestId, template }: ToolSandboxClaim,
    context: CallContext,
  ): Promise<Pick<SandboxSession, 'id' | 'template'> | { readonly unavailable: string }> {
    const request = { requestId, template, ttl: durationFromMs(TTL_MS), labels: LABELS };
    try {
      const { name, template: own } = await this.parts.router.create(context, (client, settings) =>
        client.createSandbox(request, settings),
      );
      return { id: sandboxIdOfName(name), template: own };
    } catch (error) {
      if (!REFUSED.has(errorCode(error))) throw error;
      await this.parts.sessions.dropClaim(key, requestId);
      if (errorCode(error) !== 'SANDBOX_CAPACITY') throw error;
      return { unavailable: withoutStop((error as Error).message) };
    }
  }

  /** Nothing was done in it. @throws EtudeError SANDBOX_UNAVAILABLE */
  async #close(id: string, context: CallContext): Promise<void> {
    const isThere = (await this.parts.sandboxes.get(context.tenant, id))?.session.state === 'open';
    if (isThere) await this.parts.router.ask(id, context, (client, settings) => client.closeSandbox({ name: sandboxName(id) }, settings));
  }

  #session({ id, template }: Pick<SandboxSession, 'id' | 'template'>, context: CallContext): CodeSession {
    const { router, log } = this.parts;
    const name = sandboxName(id);
    return {
      sandbox: name,
      template,
      isReplaced: false,
      run: (cell, signal) => runCell({ router, log }, id, cell, { ...context, signal }),
      inTurn: (work, signal) =>
        this.#turns.take(
          name,
          async () => {
            await this.#renew(id, { ...context, signal });
            return work();
          },
          signal,
        ),
      async files(signal) {
        const request = { name, pageSize: FILES_MAX };
        const { files } = await router.ask(id, { ...context, signal }, (client, settings) => client.listSandboxFiles(request, settings));
        return files.map(({ path }) => path);
      },
      async has(path, signal) {
        try {
          const ask = { name, path };
          const file = await router.ask(id, { ...context, signal }, (client, settings) => client.getSandboxFile(ask, settings));
          // What was uploaded in part has none.
          return file.modifyTime !== undefined;
        } catch (error) {
          if (NO_FILE.has(errorCode(error))) return false;
          throw error;
        }
      },
    };
  }
}

/** A sentence as part of another. */
const withoutStop = (message: string) => message.replace(/\.$/, '');
