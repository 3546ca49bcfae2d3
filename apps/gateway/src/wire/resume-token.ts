import { invalidField } from './validation.js';

const EVENT_ID = /^[0-9]{1,19}-[0-9]{1,19}$/;

/** Opaque to callers: the last event they saw, and of which task. */
export const resumeToken = (taskId: string, eventId: string) => Buffer.from(`${taskId}/${eventId}`).toString('base64url');

/** @throws EtudeError INVALID_ARGUMENT for a token of another task, or one that we didn't make */
export function eventIdOf(token: string, taskId: string): string | null {
  if (token === '') return null;
  const [task, eventId = ''] = Buffer.from(token, 'base64url').toString('utf8').split('/');
  if (!EVENT_ID.test(eventId))
    throw invalidField(
      'resume_token',
      'was not made by this server; pass the resume_token of an event unchanged, or none to start at the beginning',
    );
  if (task !== taskId) throw invalidField('resume_token', `belongs to another task (tasks/${task}); pass one of an event of this task`);
  return eventId;
}
