import { ERROR_KINDS, type ErrorCode, EtudeError } from '@etude/contracts/errors';
import type { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import type { ServiceClient } from '@etude/contracts/grpc-client';
import { decodeStatus, isServiceError } from '@etude/contracts/rich-status';
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';

export interface GatewayCalls {
  readonly tools: Pick<ServiceClient<typeof Tools>, 'listTools' | 'callTool'>;
  readonly skills: Pick<ServiceClient<typeof Skills>, 'listSkills' | 'listSkillVersions' | 'exportSkill'>;
}

export function callFailure(error: unknown): { readonly code: ErrorCode; readonly message: string } | null {
  // A gateway in the same process throws EtudeErrors directly.
  if (error instanceof EtudeError) return { code: error.code, message: error.message };
  if (!isServiceError(error)) return null;
  return { code: decodeStatus(error.metadata)?.code ?? named(error.code), message: error.details };
}

const named = (grpc: number): ErrorCode =>
  (Object.entries(ERROR_KINDS).find(([, kind]) => kind.grpc === grpc)?.[0] ?? 'INTERNAL') as ErrorCode;

/** Turns a failed gateway call into an error of the protocol, for requests that aren't tool calls. Keeps the gateway's message. */
export function protocolError(error: unknown): unknown {
  const failure = callFailure(error);
  if (failure === null) return error;
  const isRefusal = failure.code === 'UNAUTHENTICATED' || failure.code === 'PERMISSION_DENIED';
  const isCallers = ERROR_KINDS[failure.code].fault === 'caller' && !isRefusal;
  const code = isCallers ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
  return new ProtocolError(code, failure.message, { code: failure.code });
}
