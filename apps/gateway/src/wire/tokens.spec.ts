import fc from 'fast-check';
import { expect, it } from 'vitest';
import { afterPageToken, eventIdOf, pageToken, resumeToken } from './names.js';

it('returns the place of a page token for the same filter only', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 100 }), fc.jsonValue(), (after, filter) => {
      const token = pageToken(after, filter);
      expect(afterPageToken(token, filter)).toBe(after);
      expect(() => afterPageToken(token, { filter, more: true })).toThrow('page_token');
    }),
  );
});

it('refuses any text that is not a token, with the name of the field', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (text) => {
      expect(() => afterPageToken(text, null)).toThrow('page_token');
      expect(() => eventIdOf(text, 't0192f0c8a1b2')).toThrow('resume_token');
    }),
  );
});

it('returns the event of a resume token for its own task only', () => {
  expect(eventIdOf(resumeToken('t1', '5-0'), 't1')).toBe('5-0');
  for (const token of [resumeToken('t2', '5-0'), resumeToken('t1', '1-1; DROP')])
    expect(() => eventIdOf(token, 't1')).toThrow('resume_token');
});
