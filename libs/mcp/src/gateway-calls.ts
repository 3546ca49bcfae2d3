import { ERROR_KINDS, type ErrorCode, EtudeError } from '@etude/contracts/errors';
import type { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import type { ServiceClient } from '@etude/contracts/grpc-client';
import { decodeStatus } from '@etude/contracts/rich-status';
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';

/** The calls of the gateway that this server is made of. */
export interface GatewayCalls {
  readonly tools: Pick<ServiceClient<typeof Tools>, 'listTools' | 'callTool'>;
  readonly skills: Pick<ServiceClient<typeof Skills>, 'listSkills' | 'listSkillVersions' | 'exportSkill'>;
}

/** What a failed call of the gateway says; null for what is no such failure. */
export function callFailure(error: unknown): { readonly code: ErrorCode; readonly message: string } | null {
  // A gateway in the same process throws its errors as they are.
  if (error instanceof EtudeError) return { code: error.code, message: error.message };
  if (!isFailedCall(error)) return null;
  return { code: decodeStatus(error.metadata)?.code ?? named(error.code), message: error.details };
}

interface FailedCall {
  /** gRPC's number. */
  readonly code: number;
  readonly details: string;
  readonly metadata: Parameters<typeof decodeStatus>[0];
}

const isFailedCall = (error: unknown): error is FailedCall => error instanceof Error && 'details' in error && 'code' in error;

const named = (grpc: number): ErrorCode =>
  (Object.entries(ERROR_KINDS).find(([, kind]) => kind.grpc === grpc)?.[0] ?? 'INTERNAL') as ErrorCode;

/** For requests that are no tool: an error of the protocol, with the gateway's own words. */
export function protocolError(error: unknown): unknown {
  const failure = callFailure(error);
  if (failure === null) return error;
  const isRefusal = failure.code === 'UNAUTHENTICATED' || failure.code === 'PERMISSION_DENIED';
  const isCallers = ERROR_KINDS[failure.code].fault === 'caller' && !isRefusal;
  const code = isCallers ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
  return new ProtocolError(code, failure.message, { code: failure.code });
}
