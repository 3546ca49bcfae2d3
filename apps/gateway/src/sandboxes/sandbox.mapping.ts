import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type SandboxSchema, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { sandboxName } from '@etude/contracts/ids';
import type { SandboxSession } from '@etude/contracts/sandbox-session';
import { invalidField } from '../wire/validation.js';
import { sandboxLimitsMessage } from './sandbox-limits.mapping.js';

const STATES: Readonly<Record<SandboxSession['state'], SandboxState>> = {
  open: SandboxState.OPEN,
  closed: SandboxState.CLOSED,
  expired: SandboxState.EXPIRED,
  lost: SandboxState.LOST,
};
const BY_NUMBER = new Map(Object.entries(STATES).map(([state, number]) => [number, state as SandboxSession['state']]));

/** Unspecified is every state. @throws EtudeError INVALID_ARGUMENT */
export function stateFilterOf(state: SandboxState): SandboxSession['state'] | undefined {
  if (state === SandboxState.UNSPECIFIED) return undefined;
  const known = BY_NUMBER.get(state);
  if (!known) throw invalidField('state', `${state as number} is no state of a sandbox`);
  return known;
}

export function sandboxMessage(session: SandboxSession): MessageInitShape<typeof SandboxSchema> {
  return {
    name: sandboxName(session.id),
    state: STATES[session.state],
    stateReason: session.stateReason,
    template: session.template,
    limits: sandboxLimitsMessage(session.limits),
    labels: session.labels,
    createTime: timestampFromMs(session.createdAt),
    expireTime: timestampFromMs(session.expiresAt),
  };
}
