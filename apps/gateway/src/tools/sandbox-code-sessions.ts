import { randomUUID } from 'node:crypto';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { errorCode, EtudeError, unlessAborted } from '@etude/contracts/errors';
import { SandboxId, sandboxName } from '@etude/contracts/ids';
import { type SandboxFile, type SandboxSession, SESSION_TTL_MS_DEFAULT } from '@etude/contracts/sandbox';
import { TASK_FILES_MAX_BYTES } from '@etude/contracts/task';
import type { CodeSession, CodeSessions } from '@etude/domain/tools/execute-in-session';
import type { SessionKey } from '@etude/domain/tools/tool-definition';
import type { RedisToolSessions, ToolSandboxClaim } from '@etude/queue/agents/tool-sessions';
import type { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import type { CallContext } from '../calls/caller.js';
import { readFile, runCell } from '@etude/queue/sandboxes/router-work-sandboxes';
import type { SandboxRouter } from '@etude/queue/sandboxes/sandbox-router';
import { sandboxIdOfName } from '../wire/names.js';

/** Lifetime of a sandbox after its last call. */
const TTL_MS = SESSION_TTL_MS_DEFAULT;
const FILES_MAX = 1_000;
/** Error codes that prove that the request created no sandbox. */
const REFUSED: ReadonlySet<string> = new Set([
  'INVALID_ARGUMENT',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'FAILED_PRECONDITION',
  'SANDBOX_CAPACITY',
]);
const LABEL = 'opened-by';
const LABELS = { [LABEL]: 'code_interpreter' };

interface CodeSessionParts {
  readonly router: SandboxRouter;
  readonly sandboxes: Pick<SandboxSessionStore, 'get' | 'openCount'>;
  readonly sessions: Pick<RedisToolSessions, 'readSandbox' | 'claimSandbox' | 'dropClaim' | 'keepSandbox' | 'ownSandbox'>;
  /** Tools open no sandbox while the tenant has this many open, including those that callers opened. */
  readonly openMax: number;
}

/** Runs calls with the same name one at a time, in order, within this process. */
export class SessionTurns {
  /** By name; resolves after the last call. */
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

/** Gives tool sessions sandboxes of `etude.v1.Sandboxes`, with the same tenant, quota, limits and lifetime. */
export class SandboxCodeSessions implements CodeSessions {
  /** Of concurrent calls, only the first creates a sandbox. The others then use this sandbox. */
  readonly #openings = new SessionTurns();
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

  async #opened(key: SessionKey, template: string, context: CallContext): Promise<CodeSession | { readonly unavailable: string }> {
    const { sandboxes, sessions, openMax } = this.parts;
    const { requestId, sandbox } = await sessions.readSandbox(key);
    const known = sandbox === null ? null : await sandboxes.get(key.tenant, sandbox);
    if (known?.session.state === 'open') return this.#session(known.session, context);
    // A claim without a sandbox was already counted.
    const isCounted = requestId !== null && sandbox === null;
    const open = isCounted ? 0 : await sandboxes.openCount(key.tenant);
    if (open >= openMax) return { unavailable: `${open} sandboxes are open, and tools may open ${openMax} at most; close one` };
    const another = { requestId: `tool-${randomUUID()}`, template };
    const claim = await sessions.claimSandbox(key, sandbox === null ? null : requestId, another);
    const opened = await this.#create(key, claim, context);
    if ('unavailable' in opened) return opened;
    const outcome = await sessions.keepSandbox(key, claim.requestId, opened.id);
    if (outcome === 'kept') return { ...this.#session(opened, context), isReplaced: claim.isReplaced };
    const unused = { name: sandboxName(opened.id) };
    if (outcome === 'replaced')
      await this.parts.router.ask(opened.id, context, (client, settings) => client.closeSandbox(unused, settings));
    throw new EtudeError('SANDBOX_UNAVAILABLE', `The sandbox of session ${key.session} ended while it was being opened. Call again.`);
  }

  /**
   * The sandbox whose id is the session's name. Its first use reserves it for this agent and user.
   *
   * @throws EtudeError FAILED_PRECONDITION if it has ended, or belongs to another agent or user
   */
  async #named(key: SessionKey): Promise<SandboxSession | null> {
    const { tenant, session } = key;
    if (!SandboxId.safeParse(session).success) return null;
    const found = (await this.parts.sandboxes.get(tenant, session))?.session ?? null;
    if (found === null) return null;
    // A sandbox that a tool session just opened has no recorded owner yet. Others belong to the whole tenant at first.
    const mayBegin = found.labels[LABEL] !== LABELS[LABEL] && !key.isBound;
    const outcome = found.state === 'open' ? await this.parts.sessions.ownSandbox(key, session, mayBegin) : 'ended';
    if (outcome === 'own') return found;
    const state = found.state === 'open' ? 'closed' : found.state;
    const why = outcome === 'ended' ? `is ${state}; name an open sandbox` : 'is used by another agent or user; name one that you opened';
    throw new EtudeError('FAILED_PRECONDITION', `${sandboxName(session)} ${why}, or another session.`);
  }

  /** Extends the lifetime of a tool's sandbox. A sandbox opened by a caller keeps the caller's lifetime. */
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

  #session({ id, template }: Pick<SandboxSession, 'id' | 'template'>, context: CallContext): CodeSession {
    const { router } = this.parts;
    const name = sandboxName(id);
    return {
      sandbox: name,
      template,
      isReplaced: false,
      run: (cell, signal) => runCell(router, id, cell, { ...context, signal }),
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
      read: (paths, signal) => readFiles(router, id, paths, { ...context, signal }),
    };
  }
}

/** The contents of these files; null if they have more bytes together than a task's files may have. */
async function readFiles(
  router: SandboxRouter,
  id: string,
  paths: readonly string[],
  context: CallContext,
): Promise<readonly SandboxFile[] | null> {
  const files: SandboxFile[] = [];
  let left = TASK_FILES_MAX_BYTES;
  for (const path of paths) {
    const content = await readFile(router, id, path, left + 1, context);
    left -= content.byteLength;
    if (left < 0) return null;
    files.push({ path, contentBase64: content.toString('base64') });
  }
  return files;
}

/** Removes the final stop, to join the sentence to another. */
const withoutStop = (message: string) => message.replace(/\.$/, '');
