import { AgentId, UserId } from '@etude/contracts/ids';
import { z } from 'zod';

/** The agent of a caller that names none. */
export const DEFAULT_AGENT = 'default';

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

/** Of HTTP: which header says what. */
const HEADERS = { agent: 'etude-agent', user: 'etude-user', session: 'etude-session' } as const;
/** The session of the protocol before 2026-07-28, which its clients send back as they got it. */
export const SESSION_HEADER = 'mcp-session-id';

type Read = (name: string) => string | null | undefined;

function parsed(schema: z.ZodType<string>, header: string, text: string): string {
  const { success, error, data } = schema.safeParse(text);
  if (success) return data;
  throw new RangeError(`The header "${header}" ${error.issues[0]?.message ?? 'is wrong'}.`);
}

/** @throws RangeError naming the header that is wrong */
export function callerOf(read: Read): McpCaller {
  const agent = read(HEADERS.agent) ?? DEFAULT_AGENT;
  const user = read(HEADERS.user) ?? '';
  const own = read(HEADERS.session);
  const session = own ?? read(SESSION_HEADER) ?? '';
  const authorization = read('authorization');
  return {
    agent: parsed(AgentId, HEADERS.agent, agent),
    user: user === '' ? '' : parsed(UserId, HEADERS.user, user),
    session: session === '' ? '' : parsed(Session, own == null ? SESSION_HEADER : HEADERS.session, session),
    metadata: authorization ? { authorization } : {},
  };
}
