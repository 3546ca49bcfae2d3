import { randomUUID } from 'node:crypto';
import {
  type CreateSandboxRequest,
  CreateSandboxRequestSchema,
  type ExecuteRequest,
  ExecuteRequestSchema,
  Language,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { SandboxId } from '@etude/contracts/ids';
import { SandboxLimits, type SandboxRun, type SandboxSession, SESSION_TTL_MS_DEFAULT, SessionRequest } from '@etude/contracts/sandbox';
import {
  type ExecuteEventInit,
  executionOutcomeMessage,
  richOutputMessage,
  sandboxLimitsOf,
  toolCallMessage,
} from '@etude/contracts/sandbox-wire';
import { CellTools, Scratchpad } from '@etude/contracts/scratchpad';
import { fromWire, millisecondsOf } from '@etude/contracts/wire/messages';
import { invalidField } from '@etude/contracts/wire/validation';
import { z } from 'zod';
import type { EventPlace, ExecutionContent, ExecutionEvent } from './execution-log.js';
import type { SessionExecution } from './held-session.js';

/** @throws EtudeError INVALID_ARGUMENT where `name` is not the name of a sandbox */
export function sandboxIdOf(name: string): string {
  const id = name.startsWith('sandboxes/') ? name.slice('sandboxes/'.length) : '';
  if (!SandboxId.safeParse(id).success)
    throw invalidField('name', `must look like "sandboxes/s0192f0c8a1b2"; it is ${JSON.stringify(name.slice(0, 100))}`);
  return id;
}

const Asked = SessionRequest.omit({ tenant: true });

/** @throws EtudeError INVALID_ARGUMENT; gateways check each field with the same schemas before they forward a request */
export function sessionRequestOf(tenant: string, request: CreateSandboxRequest): SessionRequest {
  const { requestId, limits = {} } = request;
  const asked = { ...request, requestId: requestId || `made-${randomUUID()}`, limits };
  return { tenant, ...fromWire(Asked, CreateSandboxRequestSchema, asked) };
}

export const ttlOf = (ttl: CreateSandboxRequest['ttl']): number => millisecondsOf(ttl) ?? SESSION_TTL_MS_DEFAULT;

const CellFields = z.object({ tools: CellTools.optional(), scratchpad: Scratchpad.optional() });

function runOf(request: ExecuteRequest, hasScratchpad: boolean): SandboxRun {
  const { language, code, stdin } = request;
  const { tools, scratchpad = hasScratchpad ? Scratchpad.parse({}) : undefined } = fromWire(CellFields, ExecuteRequestSchema, request);
  if (language === Language.SHELL && (tools || request.scratchpad))
    throw invalidField(tools ? 'tools' : 'scratchpad', 'only LANGUAGE_PYTHON has it');
  if (language === Language.SHELL) return { kind: 'command', command: code, stdin };
  if (stdin !== '') throw invalidField('stdin', 'only LANGUAGE_SHELL has a stdin');
  return { kind: 'cell', code, ...(tools ? { tools } : {}), ...(scratchpad ? { scratchpad } : {}) };
}

/** The limits of one execution. Memory and disk may not exceed those of the session. */
function limitsOf(request: ExecuteRequest, session: SandboxLimits): SandboxLimits {
  const limits = SandboxLimits.parse({ ...session, ...sandboxLimitsOf(request.limits) });
  if (limits.memoryMiB > session.memoryMiB)
    throw invalidField('limits.memory_mib', `must be at most ${session.memoryMiB}, which the sandbox was created with`);
  if (limits.diskMiB > session.diskMiB)
    throw invalidField('limits.disk_mib', `must be at most ${session.diskMiB}, which the sandbox was created with`);
  return limits;
}

/** @throws EtudeError INVALID_ARGUMENT */
export function executionOf(request: ExecuteRequest, { limits, scratchpad = false }: SandboxSession): SessionExecution {
  const executionId = request.executionId || `e-${randomUUID()}`;
  return { executionId, run: runOf(request, scratchpad), limits: limitsOf(request, limits) };
}

const resumeToken = (executionId: string, { at, part }: EventPlace) => Buffer.from(`${executionId}/${at}.${part}`).toString('base64url');

/** The place after which to read; null: from the start. @throws EtudeError INVALID_ARGUMENT for an unknown token or another execution's */
export function placeOf(token: string, executionId: string): EventPlace | null {
  if (token === '') return null;
  const [, of, at, part] = /^([^]*)\/(\d{1,9})\.(\d{1,9})$/.exec(Buffer.from(token, 'base64url').toString('utf8')) ?? [];
  if (of === undefined) throw invalidField('resume_token', 'is not a token of this server; pass the resume_token of an event unchanged');
  if (of !== executionId) throw invalidField('resume_token', `belongs to execution "${of}"; pass its execution_id with it`);
  return { at: Number(at), part: Number(part) };
}

function contentOf(content: ExecutionContent): ExecuteEventInit['event'] {
  if (content.kind === 'display') return { case: 'display', value: richOutputMessage(content.display) };
  if (content.kind === 'call') return { case: 'toolCall', value: toolCallMessage(content.call) };
  if (content.kind === 'outcome') return { case: 'result', value: executionOutcomeMessage(content.result) };
  return { case: content.kind, value: content.text };
}

export const eventMessage = (executionId: string, event: ExecutionEvent): ExecuteEventInit => ({
  executionId,
  resumeToken: resumeToken(executionId, event),
  event: contentOf(event.content),
});
