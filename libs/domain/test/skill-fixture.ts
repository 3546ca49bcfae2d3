import type { Skill } from '@etude/contracts/memory';
import { skillOf as activeOf } from './bundle-fixture.js';

/** An active skill; a program unless it is given an entry point. */
export function skillOf(given: Partial<Skill> = {}): Skill {
  const scope = { tenant: 'acme', agent: 'default', user: null };
  const program = { scope, description: 'Doubles a number.', entryPoint: null, digest: '0'.repeat(64), model: 'fake' };
  return activeOf('double_it', 'print("right")', { ...program, ...given });
}
