import type { MessageInitShape } from '@bufbuild/protobuf';
import type { DiffSkillResponseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Skill } from '@etude/contracts/memory';
import { createTwoFilesPatch } from 'diff';

/** The compared fields beside the code, with their public names. */
const FIELDS = {
  kind: 'kind',
  description: 'description',
  entryPoint: 'entry_point',
  parameters: 'parameters',
  tags: 'tags',
  displayName: 'display_name',
  category: 'category',
  examplePrompts: 'example_prompts',
  dependencies: 'dependencies',
  packages: 'packages',
  files: 'files',
  metadata: 'metadata',
} as const satisfies Partial<Record<keyof Skill, string>>;

/**
 * The changes between two versions as unified diffs; empty without changes.
 *
 * @param from null: no earlier version
 * @param withTests whether to show tests, which may be made from hidden cases; for reviewers
 */
export function skillDiff(from: Skill | null, to: Skill, withTests: boolean): MessageInitShape<typeof DiffSkillResponseSchema> {
  return {
    fromVersion: from?.version ?? 0,
    toVersion: to.version,
    codeDiff: unified('code.py', from, to, ({ code }) => code),
    fieldsDiff: unified('skill.json', from, to, (skill) => fieldsText(skill, withTests)),
  };
}

function unified(file: string, from: Skill | null, to: Skill, textOf: (skill: Skill) => string): string {
  const [before, after] = [from === null ? '' : textOf(from), textOf(to)];
  if (before === after) return '';
  const name = (skill: Skill | null) => (skill === null ? '/dev/null' : `${skill.name}@${skill.version}/${file}`);
  return createTwoFilesPatch(name(from), name(to), before, after);
}

/** The fields as text, in a fixed order with one value per line. Held-out tests are only counted. */
function fieldsText(skill: Skill, withTests: boolean): string {
  const shown = Object.entries(FIELDS).flatMap(([field, name]) => {
    const value = skill[field as keyof typeof FIELDS];
    return value === undefined || (Array.isArray(value) && value.length === 0) ? [] : [[name, value] as const];
  });
  const tests = withTests ? { tests: skill.tests } : { test_count: skill.tests.length };
  return `${JSON.stringify({ ...Object.fromEntries(shown), ...tests, held_out_count: skill.heldOut?.length ?? 0 }, null, 2)}\n`;
}
