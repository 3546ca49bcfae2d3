import type { MessageInitShape } from '@bufbuild/protobuf';
import type { DiffSkillResponseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Skill } from '@etude/contracts/memory';
import { createTwoFilesPatch } from 'diff';
import { snakeCase } from '@etude/contracts/wire/validation';

/** The compared fields beside the code. */
const FIELDS = [
  'kind',
  'description',
  'entryPoint',
  'parameters',
  'tags',
  'displayName',
  'category',
  'examplePrompts',
  'dependencies',
  'packages',
  'files',
  'metadata',
] as const satisfies ReadonlyArray<keyof Skill>;

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
  const shown = FIELDS.flatMap((field) => {
    const value = skill[field];
    return value === undefined || (Array.isArray(value) && value.length === 0) ? [] : [[snakeCase(field), value] as const];
  });
  const tests = withTests ? { tests: skill.tests } : { test_count: skill.tests.length };
  return `${JSON.stringify({ ...Object.fromEntries(shown), ...tests, held_out_count: skill.heldOut?.length ?? 0 }, null, 2)}\n`;
}
