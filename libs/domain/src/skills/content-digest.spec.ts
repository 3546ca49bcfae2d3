import { describe, expect, it } from 'vitest';
import { codeDigest } from './content-digest.js';

const digest = (code: string, entryPoint = 'double') => codeDigest({ code, entryPoint, kind: 'function', description: '' });
const CODE = 'def double(n):\n    m = n * 2\n    return m\n';

describe('the digest of code', () => {
  it.each([
    ['a comment', CODE.replace('2\n', '2  # twice\n')],
    ['carriage returns', CODE.replaceAll('\n', '\r')],
    ['a comment that a carriage return ends', CODE.replaceAll('\n', '# hi\r')],
    ['tabs', CODE.replaceAll('    ', '\t')],
    ['lines that go on', CODE.replace('n * 2', 'n * \\\n 2')],
    ['blank lines and spaces', `\n${CODE.replace('n * 2', 'n*2')}\n\n`],
  ])('is the same with %s', (_what, code) => {
    expect(digest(code)).toBe(digest(CODE));
  });

  it('ignores the entry point’s name and covers all other code', () => {
    expect(digest(CODE.replace('double', 'twice'), 'twice')).toBe(digest(CODE));
    expect(digest(CODE.replace('2', '3'))).not.toBe(digest(CODE));
    expect(digest(CODE.replaceAll('m', 'k'))).not.toBe(digest(CODE));
  });

  it('is null for comments only', () => {
    expect(digest('# hi\n\n')).toBeNull();
  });
});
