import { EtudeError } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import type { ReadScope } from '../ports/memory.js';

/** Refuses an invalid scope, also one that the types rule out. @throws EtudeError TENANT_MISSING */
export function requireScope(scope: ReadScope): ReadScope {
  const { tenant, agent, user, also } = (scope ?? {}) as Partial<ReadScope>;
  if (typeof tenant !== 'string' || tenant.trim() === '') {
    throw new EtudeError('TENANT_MISSING', 'the memory scope has no tenant; pass the authenticated tenant');
  }
  if (typeof agent !== 'string' && agent !== null) {
    throw new EtudeError('TENANT_MISSING', 'the memory scope has no agent; pass a name, or null for every agent of the tenant');
  }
  const areNames = Array.isArray(also) && also.every((name) => typeof name === 'string' && name !== '');
  if (also !== undefined && !(areNames && typeof agent === 'string' && typeof user === 'string')) {
    throw new EtudeError('TENANT_MISSING', 'the memory scope has several owners but no reader; pass the agent and the user that read them');
  }
  return scope;
}

/** @throws EtudeError PERMISSION_DENIED for a record that belongs to another tenant */
export function requireOwn(tenant: string, scope: Scope): void {
  if (scope.tenant === tenant) return;
  const message = `a record of tenant ${JSON.stringify(scope.tenant)} can't be written as tenant ${JSON.stringify(tenant)}; write the record under its own tenant`;
  throw new EtudeError('PERMISSION_DENIED', message);
}

/** The whole tenant as the scope of a write, since ids are unique per tenant, across its agents. */
export function wholeTenant(scope: Scope | undefined): ReadScope {
  return { tenant: scope?.tenant ?? '', agent: null };
}
