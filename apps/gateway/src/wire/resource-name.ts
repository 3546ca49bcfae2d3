import { AgentId, RequestId, SandboxId, SkillName, TaskId } from '@etude/contracts/ids';
import type { z } from 'zod';
import { invalidField, parseField } from './validation.js';

function idOf(name: string, collection: string, schema: z.ZodType<string>, example: string, field = 'name'): string {
  const id = name.startsWith(`${collection}/`) ? name.slice(collection.length + 1) : null;
  if (id === null || !schema.safeParse(id).success) {
    throw invalidField(
      field,
      `must look like "${collection}/${example}"; it is ${name === '' ? 'empty' : JSON.stringify(name.slice(0, 100))}`,
    );
  }
  return id;
}

/** @throws EtudeError INVALID_ARGUMENT where the text is no name of a task */
export const taskIdOfName = (name: string) => idOf(name, 'tasks', TaskId, 't0192f0c8a1b2');
export const skillOfName = (name: string, field?: string) => idOf(name, 'skills', SkillName, 'sum_of_squares', field);
export const consolidationRunOfName = (name: string) => idOf(name, 'consolidationRuns', AgentId, 'c0192f0c8a1b2');
/** @param field where the request has the name */
export const agentOfName = (name: string, field?: string) => idOf(name, 'agents', AgentId, 'coder', field);
export const sandboxIdOfName = (name: string, field?: string) => idOf(name, 'sandboxes', SandboxId, 's0192f0c8a1b2', field);

/** Empty is none. */
export const optionalRequestId = (requestId: string) => (requestId === '' ? null : parseField(RequestId, requestId, 'request_id'));
export const optionalAgent = (agent: string) => (agent === '' ? null : parseField(AgentId, agent, 'agent'));
