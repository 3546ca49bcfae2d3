import type { MessageInitShape } from '@bufbuild/protobuf';
import { SkillSchema, SkillScopeSchema, SkillStatusSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { GLOBAL_TENANT, skillResourceName } from '@etude/contracts/ids';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { SkillScope, SkillStatus } from '@etude/contracts/skill-proof';
import { scopeOf } from '@etude/domain/skills/life/find-skill';
import { UNUSED } from '@etude/domain/skills/life/usage';
import { toWire, wordOf } from '@etude/contracts/wire/messages';

type SkillInit = MessageInitShape<typeof SkillSchema>;

/** undefined: any status. @throws EtudeError INVALID_ARGUMENT */
export const statusFilterOf = (status: number) => wordOf(SkillStatusSchema, status, 'status') as SkillStatus | undefined;

/** undefined: unspecified. @throws EtudeError INVALID_ARGUMENT */
export const scopeNamed = (scope: number, field: string) => wordOf(SkillScopeSchema, scope, field) as SkillScope | undefined;

/** The owner's name in requests and answers: the agent, or "@user", "@tenant", "@global" for a shared skill. */
export const ownerName = ({ tenant, agent }: Pick<Scope, 'tenant' | 'agent'>) => (tenant === GLOBAL_TENANT ? GLOBAL_TENANT : agent);

export const named = <T extends { readonly name: string }>(skills: readonly T[] = []) =>
  skills.map((skill) => ({ ...skill, name: skillResourceName(skill.name) }));

/** Only the fields that reveal a change of the skill. */
export const briefMessage = ({ name, scope, version, status, digest }: Skill): SkillInit =>
  toWire(SkillSchema, { name: skillResourceName(name), agent: ownerName(scope), user: scope.user, version, status, digest });

/** A skill as callers see it. It has no tests, because these may contain hidden cases. Reviews show all tests except held-out ones. */
export function skillMessage(skill: Skill): SkillInit {
  const { scope, contract, proof, replacedBy, usage = UNUSED } = skill;
  return toWire(SkillSchema, {
    ...skill,
    ...usage,
    ...contract,
    name: skillResourceName(skill.name),
    agent: ownerName(scope),
    user: scope.user,
    scope: scopeOf(skill),
    parameters: contract?.parameters ?? skill.parameters,
    files: skill.files?.map(({ path }) => path),
    dependencies: named(skill.dependencies),
    proof: proof && { ...proof, kept: named(proof.kept), alike: named(proof.alike) },
    replacedBy: replacedBy && skillResourceName(replacedBy),
    testCount: skill.tests.length,
    offeredCount: usage.offered,
    usedCount: usage.used,
    fellBackCount: usage.fellBack,
  });
}
