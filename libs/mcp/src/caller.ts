import { AgentId, UserId } from '@etude/contracts/ids';
import { z } from 'zod';

/** The id of a session, to which loaded functions, todos and files belong. */
const Session = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must hold only letters, digits, "_" and "-", at most 64');

/** The agent, user and session of forwarded calls. The key decides the tenant. */
export interface McpCaller {
  readonly agent: string;
  /** Empty: no particular user. */
  readonly user: string;
  /** Empty: no session. */
  readonly session: string;
  /** Metadata sent with each call: the caller's key and trace. Empty if the gateway client has its own key. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** The session header of revisions before 2026-07-28. Clients return it unchanged. */
export const SESSION_HEADER = 'mcp-session-id';

/** The caller that headers describe. `read` reads one header. @throws RangeError with the name that `named` has for the wrong header */
export function callerOf(
  read: (name: string) => string | null | undefined,
  named = (header: string) => `The header "${header}"`,
): McpCaller {
  const parsed = (schema: z.ZodType<string>, header: string) => {
    const text = read(header) ?? '';
    if (text === '') return '';
    const { success, error, data } = schema.safeParse(text);
    if (success) return data;
    throw new RangeError(`${named(header)} ${error.issues[0]?.message ?? 'is wrong'}.`);
  };
  const [authorization, traceparent] = [read('authorization'), read('traceparent')];
  return {
    agent: parsed(AgentId, 'etude-agent') || 'default',
    user: parsed(UserId, 'etude-user'),
    session: parsed(Session, 'etude-session') || parsed(Session, SESSION_HEADER),
    metadata: { ...(authorization ? { authorization } : {}), ...(traceparent ? { traceparent } : {}) },
  };
}
