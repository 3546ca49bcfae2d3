import type { Json } from '@etude/contracts/json';
import type { SkillTest } from '@etude/contracts/memory';

/** A test that calls the function with these arguments. */
export const call = (args: Json[], expected: Json): SkillTest => ({ kind: 'call', args, kwargs: {}, expected, tolerance: 0 });

/** A test that compares what the program prints. Blanks make no difference. */
export const io = (stdin: string, expectedStdout: string): SkillTest => ({
  kind: 'io',
  stdin,
  expectedStdout,
  comparison: 'whitespace',
  tolerance: 0,
});
