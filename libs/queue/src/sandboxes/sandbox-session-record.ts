import { SandboxSession } from '@etude/contracts/sandbox-session';
import { parseOr } from '../jobs/job-failure.js';

/** A session and who holds it. */
export interface StoredSession {
  readonly session: SandboxSession;
  readonly controllerId: string;
  /** Raised with each controller that takes it over; from 1. */
  readonly ownerEpoch: number;
  /** From where another controller can attach to its sandbox; null: from nowhere. */
  readonly place: string | null;
}

/** Reads a session's hash. null where there is none. */
export function readStoredSession(tenant: string, id: string, fields: Readonly<Record<string, string>>): StoredSession | null {
  if (!fields.state || !fields.spec) return null;
  const session = {
    ...(JSON.parse(fields.spec) as object),
    id,
    tenant,
    state: fields.state,
    stateReason: fields.stateReason ?? '',
    createdAt: Number(fields.createdAt),
    expiresAt: Number(fields.expiresAt),
  };
  return {
    session: parseOr(SandboxSession, session, 'INTERNAL', `the record of sandbox ${id}`),
    controllerId: fields.controllerId ?? '',
    ownerEpoch: Number(fields.ownerEpoch),
    place: fields.place ?? null,
  };
}
