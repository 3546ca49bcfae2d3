import type { ServerCall } from '@etude/contracts/grpc';
import { UserId } from '@etude/contracts/ids';
import type { Scope } from '@etude/contracts/memory';
import { AgentId } from '@etude/contracts/ids';
import type { ReadScope } from '@etude/domain/ports/memory';
import type { Owners } from '@etude/memory/record-store';
import { contextOf } from '../calls/call-context.js';
import { optionalAgent } from '../wire/resource-name.js';
import { parseField } from '../wire/validation.js';

export interface Whose {
  readonly agent: string;
  readonly user: string;
}

const optionalUser = (user: string) => (user === '' ? null : parseField(UserId, user, 'user'));

/** What a reader sees: the tenant of the key, narrowed as the request says. */
export function readScope(call: ServerCall, { agent, user }: Partial<Whose> = {}): ReadScope {
  return { tenant: contextOf(call).tenant, agent: optionalAgent(agent ?? ''), user: optionalUser(user ?? '') };
}

/** Whose a new record is. @throws EtudeError INVALID_ARGUMENT without an agent */
export function ownScope(call: ServerCall, { agent, user }: Whose): Scope {
  return { tenant: contextOf(call).tenant, agent: parseField(AgentId, agent, 'agent'), user: optionalUser(user) };
}

/** Exactly these owners' records; empty is any. */
export function ownersOf(call: ServerCall, { agent, user }: Whose): Owners {
  const owners = { agent: optionalAgent(agent), user: optionalUser(user) };
  return {
    tenant: contextOf(call).tenant,
    ...(owners.agent === null ? {} : { agent: owners.agent }),
    ...(owners.user === null ? {} : { user: owners.user }),
  };
}
