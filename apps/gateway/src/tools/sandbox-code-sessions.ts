import { randomUUID } from 'node:crypto';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { SandboxId, sandboxName } from '@etude/contracts/ids';
import { SESSION_TTL_MS_DEFAULT, type SandboxSession } from '@etude/contracts/sandbox-session';
import type { CodeSession, CodeSessions } from '@etude/domain/tools/code-sessions';
import type { SessionKey } from '@etude/domain/tools/tool-ports';
import type { SandboxSessionStore } from '@etude/queue/sandbox-sessions';
import type { RedisToolSessions } from '@etude/queue/tool-sessions';
import type { CallContext } from '../calls/call-context.js';
import type { SandboxRouter } from '../sandboxes/sandbox-router.js';
import { sandboxIdOfName } from '../wire/resource-name.js';
import { runCell } from './run-cell.js';

/** After its last call. */
const TTL_MS = SESSION_TTL_MS_DEFAULT;
const FILES_MAX = 1_000;
const LABELS = { 'opened-by': 'code_interpreter' };

export interface CodeSessionParts {
  readonly router: SandboxRouter;
  readonly sandboxes: Pick<SandboxSessionStore, 'get' | 'openCount'>;
  readonly sessions: Pick<RedisToolSessions, 'readSandbox' | 'claimSandbox' | 'putSandbox'>;
  /** Sandboxes of a tenant, whoever opened them, beyond which tools open no other. */
  readonly openMax: number;
}

/** Sandboxes of sessions of tools are those of `etude.v1.Sandboxes`: the same tenant, quota, limits and ends. */
export class SandboxCodeSessions implements CodeSessions {
  constructor(private readonly parts: CodeSessionParts) {}

  async open(key: SessionKey, template: string | undefined, signal: AbortSignal): Promise<CodeSession | { readonly unavailable: string }> {
    const off = this.#whyOff();
    if (off !== null) return { unavailable: off };
    const context: CallContext = { tenant: key.tenant, name: key.agent, roles: [], signal, deadlineMs: Infinity };
    const named = await this.#named(key);
    if (named !== null) return this.#session(named, context);
    const { sandboxes, sessions } = this.parts;
    const { requestId, sandbox } = await sessions.readSandbox(key);
    const known = sandbox === null ? null : await sandboxes.get(key.tenant, sandbox);
    if (known?.session.state === 'open') {
      await this.#renew(known.session, context);
      return this.#session(known.session, context);
    }
    const opened = await this.#create(key, { last: requestId, template: template ?? 'default' }, context);
    return 'unavailable' in opened ? opened : { ...this.#session(opened, context), isReplaced: sandbox !== null };
  }

  /** Why there are no sandboxes for callers at all. */
  #whyOff(): string | null {
    try {
      this.parts.router.requireOn();
      return null;
    } catch (error) {
      return withoutStop((error as Error).message);
    }
  }

  /** The sandbox whose id the session's name is. @throws EtudeError FAILED_PRECONDITION where it has ended */
  async #named({ tenant, session }: SessionKey): Promise<SandboxSession | null> {
    if (!SandboxId.safeParse(session).success) return null;
    const found = (await this.parts.sandboxes.get(tenant, session))?.session ?? null;
    if (found === null || found.state === 'open') return found;
    throw new EtudeError('FAILED_PRECONDITION', `${sandboxName(session)} is ${found.state}; name an open sandbox, or another session.`);
  }

  async #renew({ id, expiresAt }: SandboxSession, context: CallContext): Promise<void> {
    if (expiresAt - Date.now() > TTL_MS / 2) return;
    const request = { name: sandboxName(id), ttl: durationFromMs(TTL_MS) };
    await this.parts.router.ask(id, context, (client, settings) => client.renewSandbox(request, settings));
  }

  async #create(
    key: SessionKey,
    { last, template }: { readonly last: string | null; readonly template: string },
    context: CallContext,
  ): Promise<Pick<SandboxSession, 'id' | 'template'> | { readonly unavailable: string }> {
    const { router, sandboxes, sessions, openMax } = this.parts;
    const open = await sandboxes.openCount(key.tenant);
    if (open >= openMax) return { unavailable: `${open} sandboxes are open, and with ${openMax} the tools open no other; close one` };
    const requestId = await sessions.claimSandbox(key, last, `tool-${randomUUID()}`);
    const request = { requestId, template, ttl: durationFromMs(TTL_MS), labels: LABELS };
    try {
      const { name, template: own } = await router.create(context, (client, settings) => client.createSandbox(request, settings));
      const id = sandboxIdOfName(name);
      await sessions.putSandbox(key, id);
      return { id, template: own };
    } catch (error) {
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
      async files(signal) {
        const request = { name, pageSize: FILES_MAX };
        const { files } = await router.ask(id, { ...context, signal }, (client, settings) => client.listSandboxFiles(request, settings));
        return files.map(({ path }) => path);
      },
    };
  }
}

/** A sentence as part of another. */
const withoutStop = (message: string) => message.replace(/\.$/, '');
