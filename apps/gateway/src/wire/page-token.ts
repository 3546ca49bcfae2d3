import { createHash } from 'node:crypto';
import { z } from 'zod';
import { invalidField } from './validation.js';

const Token = z.strictObject({ v: z.literal(1), after: z.string().min(1).max(300), filter: z.string() });

const digest = (filter: unknown) => createHash('sha256').update(JSON.stringify(filter)).digest('base64url').slice(0, 16);

/** Opaque to callers: where the next page begins, and for which filter it is good. */
export function pageToken(after: string | null, filter: unknown): string {
  if (after === null) return '';
  return Buffer.from(JSON.stringify({ v: 1, after, filter: digest(filter) } satisfies z.infer<typeof Token>)).toString('base64url');
}

/**
 * Where to go on; null is the start.
 *
 * @throws EtudeError INVALID_ARGUMENT for a token of another method or filter, or one that we didn't make
 */
export function afterPageToken(token: string, filter: unknown): string | null {
  if (token === '') return null;
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'));
  } catch {
    json = null;
  }
  const parsed = Token.safeParse(json);
  if (!parsed.success)
    throw invalidField('page_token', 'was not made by this server; pass next_page_token of the answer before, unchanged');
  if (parsed.data.filter !== digest(filter)) {
    throw invalidField(
      'page_token',
      'belongs to a list with another filter; keep every other field of the request as it was, or start without a token',
    );
  }
  return parsed.data.after;
}
