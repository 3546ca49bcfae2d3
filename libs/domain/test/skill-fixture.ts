import { Skill } from '@etude/contracts/memory';

/** An active skill; a program unless it is given an entry point. */
export function skillOf(given: Partial<Skill> = {}): Skill {
  return Skill.parse({
    name: 'double_it',
    version: 1,
    scope: { tenant: 'acme', agent: 'default', user: null },
    kind: 'function',
    description: 'Doubles a number.',
    code: 'print("right")',
    entryPoint: null,
    tests: [],
    cues: [],
    fingerprints: [],
    status: 'active',
    digest: '0'.repeat(64),
    sources: [],
    model: 'fake',
    scripted: false,
    createdAt: 1,
    updatedAt: 1,
    ...given,
  });
}
