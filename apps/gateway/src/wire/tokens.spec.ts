import fc from 'fast-check';
import { expect, it } from 'vitest';
import { askedPage, eventIdOf, resumeToken } from './names.js';

const LIMITS = { max: 9, standard: 5 };
const pageOf = (pageToken: string, filter: unknown) => askedPage({ pageSize: 0, pageToken }, LIMITS, filter);

it('returns the place of a page token for the same filter only', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 100 }), fc.jsonValue(), (after, filter) => {
      const token = pageOf('', filter).tokenOf(after);
      expect(pageOf(token, filter).after).toBe(after);
      expect(() => pageOf(token, { filter, more: true })).toThrow('page_token');
    }),
  );
});

it('refuses any text that is not a token, with the name of the field', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (text) => {
      expect(() => pageOf(text, null)).toThrow('page_token');
      expect(() => eventIdOf(text, 't0192f0c8a1b2')).toThrow('resume_token');
    }),
  );
});

it('returns the event of a resume token for its own task only', () => {
  expect(eventIdOf(resumeToken('t1', '5-0'), 't1')).toBe('5-0');
  for (const token of [resumeToken('t2', '5-0'), resumeToken('t1', '1-1; DROP')])
    expect(() => eventIdOf(token, 't1')).toThrow('resume_token');
});
