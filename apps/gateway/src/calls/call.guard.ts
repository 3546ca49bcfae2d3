import { EtudeError } from '@etude/contracts/errors';
import type { ServerCall } from '@etude/contracts/grpc';
import { hasRole, type Role } from '@etude/platform/auth';
import { type CanActivate, type ExecutionContext, Injectable, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { Drain } from '../server/drain.js';
import { Authenticator } from './authenticator.js';
import { openContext } from './call-context.js';
import { checkRequest } from './check-request.js';
import { RequestStream } from './request-stream.js';

const ROLE = 'etude:role';

/** The role that a caller needs; "user" where nothing is said. */
export const NeedsRole = (role: Role) => SetMetadata(ROLE, role);

function refuseExpired(deadlineMs: number): void {
  if (deadlineMs <= Date.now())
    throw new EtudeError('DEADLINE_EXCEEDED', 'The deadline of this call was over before any work began; set a later one.');
}

/** It was sent and taken back before its turn came. */
function refuseCancelled(call: ServerCall): void {
  if (call.cancelled) throw new EtudeError('CANCELLED', 'The caller ended the call before any work began.');
}

/** Every call passes here first: who calls, may they, is it wanted still, is there time, does the request decode. */
@Injectable()
export class CallGuard implements CanActivate {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly drain: Drain,
    private readonly reflector: Reflector,
  ) {}

  canActivate(context: ExecutionContext): boolean {
    const [request, , call] = context.getArgs<[object, unknown, ServerCall]>();
    const identity = this.authenticator.identify(call.metadata.get('authorization'));
    const role = this.reflector.getAllAndOverride<Role | undefined>(ROLE, [context.getHandler(), context.getClass()]) ?? 'user';
    if (!hasRole(identity.roles, role)) {
      throw new EtudeError(
        'PERMISSION_DENIED',
        `This call needs a key with the role "${role}"; this one has: ${identity.roles.join(', ')}.`,
      );
    }
    const { deadlineMs } = openContext(call, identity, this.drain.signal);
    refuseCancelled(call);
    refuseExpired(deadlineMs);
    // Of a stream of requests each is checked as it comes.
    if (!(request instanceof RequestStream)) checkRequest(request);
    return true;
  }
}
