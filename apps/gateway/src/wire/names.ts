import { hash } from 'node:crypto';
import { AgentId, RequestId, SandboxId, SkillName, TaskId, UserId, WorldId } from '@etude/contracts/ids';
import type { z } from 'zod';
import { boundedCount, invalidField, parseField } from '@etude/contracts/wire/validation';

function idOf(name: string, collection: string, schema: z.ZodType<string>, example: string, field = 'name'): string {
  const id = name.startsWith(`${collection}/`) ? name.slice(collection.length + 1) : null;
  if (id !== null && schema.safeParse(id).success) return id;
  const shown = name === '' ? 'empty' : JSON.stringify(name.slice(0, 100));
  throw invalidField(field, `must look like "${collection}/${example}", but is ${shown}`);
}

/** @throws EtudeError INVALID_ARGUMENT if the text isn't the name of a task */
export const taskIdOfName = (name: string) => idOf(name, 'tasks', TaskId, 't0192f0c8a1b2');
export const skillOfName = (name: string, field?: string) => idOf(name, 'skills', SkillName, 'sum_of_squares', field);
export const consolidationRunOfName = (name: string) => idOf(name, 'consolidationRuns', AgentId, 'c0192f0c8a1b2');
export const agentOfName = (name: string, field?: string) => idOf(name, 'agents', AgentId, 'coder', field);
export const sandboxIdOfName = (name: string, field?: string) => idOf(name, 'sandboxes', SandboxId, 's0192f0c8a1b2', field);
export const worldOfName = (name: string) => idOf(name, 'worlds', WorldId, 'moor');

export const optionalRequestId = (requestId: string) => (requestId === '' ? null : parseField(RequestId, requestId, 'request_id'));
export const optionalAgent = (agent: string) => (agent === '' ? null : parseField(AgentId, agent, 'agent'));
export const optionalUser = (user: string, field = 'user') => (user === '' ? null : parseField(UserId, user, field));

/**
 * The requested page, which starts after `after` (null: the first page). `tokenOf` makes the token of the page that starts after a place
 * (null: the last page). `cut` takes up to one record more than the page has, and returns the page with the token of the next one.
 *
 * @throws EtudeError INVALID_ARGUMENT, also for a token of another method or filter
 */
export function askedPage(request: { pageSize: number; pageToken: string }, limits: { max: number; standard: number }, filter: unknown) {
  const pageSize = boundedCount(request.pageSize, 'page_size', limits);
  // A token is opaque to callers: a digest of its filter, then the place.
  const digest = hash('sha256', JSON.stringify(filter), 'base64url').slice(0, 16);
  const text = Buffer.from(request.pageToken, 'base64url').toString('utf8');
  const after = text.slice(digest.length);
  if (request.pageToken !== '' && (!text.startsWith(digest) || after === ''))
    throw invalidField(
      'page_token',
      'does not belong to this list. Pass next_page_token of the previous answer, and leave all other fields unchanged',
    );
  const tokenOf = (place: string | null) => (place === null ? '' : Buffer.from(`${digest}${place}`).toString('base64url'));
  const cut = <T>(found: readonly T[], placeOf: (last: T) => string) => {
    const items = found.slice(0, pageSize);
    return { items, nextPageToken: tokenOf(found.length > pageSize ? placeOf(items.at(-1)!) : null) };
  };
  return { pageSize, limit: pageSize + 1, after: after || null, tokenOf, cut };
}

const EVENT_ID = /^[0-9]{1,19}-[0-9]{1,19}$/;

/** An opaque token: the task, and the last event that the caller saw. */
export const resumeToken = (taskId: string, eventId: string) => Buffer.from(`${taskId}/${eventId}`).toString('base64url');

/** The event after which to continue; null: from the start. @throws EtudeError INVALID_ARGUMENT if the token isn't of this task */
export function eventIdOf(token: string, taskId: string): string | null {
  if (token === '') return null;
  const [task, eventId = ''] = Buffer.from(token, 'base64url').toString('utf8').split('/');
  if (EVENT_ID.test(eventId) && task === taskId) return eventId;
  throw invalidField(
    'resume_token',
    `does not belong to tasks/${taskId}. Pass the token of one of its events, unchanged, or leave it empty to start at the first event`,
  );
}
