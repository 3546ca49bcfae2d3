import { EtudeError } from '@etude/contracts/errors';
import { sandboxName } from '@etude/contracts/ids';
import type { SandboxSession } from '@etude/contracts/sandbox-session';

/** Also for another tenant's: who may not know of it learns nothing. */
export const notFound = (id: string) =>
  new EtudeError('NOT_FOUND', `There is no ${sandboxName(id)}. It may have belonged to another key, or ended more than an hour ago.`, {
    metadata: { name: sandboxName(id) },
  });

/** Nothing can be done in it any more. */
export function ended({ id, state, stateReason }: Pick<SandboxSession, 'id' | 'state' | 'stateReason'>): EtudeError {
  const how = state === 'lost' ? `was lost: ${stateReason}` : state === 'expired' ? 'expired; renew a sandbox in time' : 'was closed';
  return new EtudeError('FAILED_PRECONDITION', `${sandboxName(id)} ${how}. Create another one.`, {
    metadata: { name: sandboxName(id), state, ...(stateReason ? { reason: stateReason } : {}) },
  });
}

/** The caller's router looked too early, or too late: trying again finds the right controller. */
export const heldElsewhere = (id: string, controllerId: string) =>
  new EtudeError('SANDBOX_UNAVAILABLE', `${sandboxName(id)} is held by another controller (${controllerId}); try again`, {
    retryAfterMs: 500,
    metadata: { controller: controllerId },
  });

export const shuttingDown = () =>
  new EtudeError('SHUTTING_DOWN', 'This sandbox controller is shutting down; call again, with the last resume_token.', {
    retryAfterMs: 500,
  });

export const controllerFull = (sessionsMax: number) =>
  new EtudeError('SANDBOX_CAPACITY', `This controller holds ${sessionsMax} sandboxes, which is all it may; try another, or later`, {
    metadata: { exit: 'capacity' },
  });

export const tenantFull = (tenant: string, openMax: number) =>
  new EtudeError('SANDBOX_CAPACITY', `tenant ${tenant} may have ${openMax} open sandboxes; close one, or ask the operator for more`, {
    metadata: { exit: 'capacity', openMax: String(openMax) },
  });
