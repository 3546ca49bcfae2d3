import type { Owners } from './record-store.js';
import type { ReadScope } from '@etude/domain/ports/memory';
import { requireScope } from '@etude/domain/retrieval/scopes';

/** The part of a tenant's records that a call reads or changes. */
export interface TenantView {
  readonly tenant: string;
  /** null: any agent. */
  readonly agents: readonly string[] | null;
  /** null: any user. A null in the list means records without a user. */
  readonly users: ReadonlyArray<string | null> | null;
}

/** A reader's view. A user sees their own records and those without a user. @throws EtudeError TENANT_MISSING */
export function seenBy(scope: ReadScope): TenantView {
  const { tenant, agent, user, also = [] } = requireScope(scope);
  return { tenant, agents: agent === null ? null : [agent, ...also], users: typeof user === 'string' ? [null, user] : null };
}

/** A view of exactly these owners' records. @throws EtudeError TENANT_MISSING */
export function ownedBy(owners: Owners): TenantView {
  const { tenant } = requireScope({ tenant: owners?.tenant, agent: null });
  const { agent, user } = owners;
  return { tenant, agents: agent === undefined ? null : [agent], users: user === undefined ? null : [user] };
}
