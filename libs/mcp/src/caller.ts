import { AgentId, UserId } from '@etude/contracts/ids';
import { z } from 'zod';

/** What loaded functions, todos and files belong to. */
export const Session = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must hold only letters, digits, "_" and "-", at most 64');

/** In whose name calls go to the gateway. The tenant is not among it: that comes from the key alone. */
export interface McpCaller {
  readonly agent: string;
  /** Empty: nobody in particular. */
  readonly user: string;
  /** Empty: none. */
  readonly session: string;
  /** Sent with each call: the key, where the client has none of its own. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** The session of the protocol before 2026-07-28, which its clients send back as they got it. */
export const SESSION_HEADER = 'mcp-session-id';

/** @param read one header. @throws RangeError naming the header that is wrong */
export function callerOf(read: (name: string) => string | null | undefined): McpCaller {
  const parsed = (schema: z.ZodType<string>, header: string) => {
    const text = read(header) ?? '';
    if (text === '') return '';
    const { success, error, data } = schema.safeParse(text);
    if (success) return data;
    throw new RangeError(`The header "${header}" ${error.issues[0]?.message ?? 'is wrong'}.`);
  };
  const authorization = read('authorization');
  return {
    agent: parsed(AgentId, 'etude-agent') || 'default',
    user: parsed(UserId, 'etude-user'),
    session: parsed(Session, 'etude-session') || parsed(Session, SESSION_HEADER),
    metadata: authorization ? { authorization } : {},
  };
}
