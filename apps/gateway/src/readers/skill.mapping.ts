import { fromJson, type JsonObject, type MessageInitShape } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  type SkillChangeSchema,
  type SkillDependencySchema,
  type SkillFindingSchema,
  type SkillParameterSchema,
  type SkillProofSchema,
  type SkillSchema,
  SkillScope as ScopeMessage,
  SkillStatus as StatusMessage,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { GLOBAL_TENANT, skillResourceName, TENANT_AGENT, USER_AGENT } from '@etude/contracts/ids';
import type { Scope, Skill } from '@etude/contracts/memory';
import type {
  SkillChange,
  SkillDependency,
  SkillFinding,
  SkillParameter,
  SkillProof,
  SkillScope,
  SkillStatus,
} from '@etude/contracts/skill-proof';
import { timestampAt, timestampOf } from '../wire/time.js';
import { invalidField } from '../wire/validation.js';

const STATUSES: Readonly<Record<SkillStatus, StatusMessage>> = {
  candidate: StatusMessage.CANDIDATE,
  verified: StatusMessage.VERIFIED,
  pending_review: StatusMessage.PENDING_REVIEW,
  active: StatusMessage.ACTIVE,
  deprecated: StatusMessage.DEPRECATED,
  archived: StatusMessage.ARCHIVED,
  rejected: StatusMessage.REJECTED,
};
const BY_NUMBER = new Map(Object.entries(STATUSES).map(([status, number]) => [number, status as SkillStatus]));

const SCOPES: Readonly<Record<SkillScope, ScopeMessage>> = {
  agent: ScopeMessage.AGENT,
  user: ScopeMessage.USER,
  tenant: ScopeMessage.TENANT,
  global: ScopeMessage.GLOBAL,
};
const SCOPE_BY_NUMBER = new Map(Object.entries(SCOPES).map(([scope, number]) => [number, scope as SkillScope]));

/** undefined: whatever their status. @throws EtudeError INVALID_ARGUMENT */
export function statusFilterOf(status: StatusMessage): SkillStatus | undefined {
  if (status === StatusMessage.UNSPECIFIED) return undefined;
  const known = BY_NUMBER.get(status);
  if (!known) throw invalidField('status', `${status as number} is no status of a skill`);
  return known;
}

/** null where none is named. @throws EtudeError INVALID_ARGUMENT */
export function scopeNamed(scope: ScopeMessage, field: string): SkillScope | null {
  if (scope === ScopeMessage.UNSPECIFIED) return null;
  const known = SCOPE_BY_NUMBER.get(scope);
  if (!known) throw invalidField(field, `${scope as number} is no scope of a skill`);
  return known;
}

function scopeMessage({ tenant, agent }: Scope): ScopeMessage {
  if (tenant === GLOBAL_TENANT) return ScopeMessage.GLOBAL;
  if (agent === TENANT_AGENT) return ScopeMessage.TENANT;
  return agent === USER_AGENT ? ScopeMessage.USER : ScopeMessage.AGENT;
}

/** How the owner is called in requests and answers: the agent, or "@user", "@tenant", "@global" where it is shared. */
export const ownerName = ({ tenant, agent }: Pick<Scope, 'tenant' | 'agent'>) => (tenant === GLOBAL_TENANT ? GLOBAL_TENANT : agent);

type Init<T extends Parameters<typeof fromJson>[0]> = MessageInitShape<T>;

export function parameterMessage({ defaultValue, ...parameter }: SkillParameter): Init<typeof SkillParameterSchema> {
  return { ...parameter, ...(defaultValue === undefined ? {} : { defaultValue: fromJson(ValueSchema, defaultValue) }) };
}

export function findingMessage({ line, ...finding }: SkillFinding): Init<typeof SkillFindingSchema> {
  return { ...finding, line: line ?? 0 };
}

export function dependencyMessage({ name, version, digest }: SkillDependency): Init<typeof SkillDependencySchema> {
  return { name: skillResourceName(name), version, digest };
}

function proofMessage({ v: _v, verifiedAt, findings, kept, alike, ...proof }: SkillProof): Init<typeof SkillProofSchema> {
  return {
    ...proof,
    verifyTime: timestampAt(verifiedAt),
    findings: findings.map(findingMessage),
    kept: kept.map(dependencyMessage),
    alike: alike.map(({ name, ...likeness }) => ({ ...likeness, name: skillResourceName(name) })),
  };
}

function changeMessage({ at, by, from, to, reason }: SkillChange): Init<typeof SkillChangeSchema> {
  return { time: timestampAt(at), by, from: from === null ? StatusMessage.UNSPECIFIED : STATUSES[from], to: STATUSES[to], reason };
}

/** What the code says where it was read, else what its author did. */
function contractFields({ contract, parameters }: Skill) {
  return {
    parameters: (contract?.parameters ?? parameters).map(parameterMessage),
    ...(contract === undefined ? {} : { inputSchema: contract.inputSchema as JsonObject }),
    ...(contract?.outputSchema == null ? {} : { outputSchema: contract.outputSchema as JsonObject }),
  };
}

function usageFields({ usage, executionCount, successRate }: Skill) {
  return {
    executionCount: BigInt(executionCount),
    successRate,
    offeredCount: BigInt(usage?.offered ?? 0),
    usedCount: BigInt(usage?.used ?? 0),
    fellBackCount: BigInt(usage?.fellBack ?? 0),
    lastUseTime: timestampOf(usage?.lastUsedAt ?? null),
    nondeterministic: usage?.nondeterministic ?? false,
    failures: (usage?.failures ?? []).map(({ at, input, error }) => ({ time: timestampAt(at), input, error })),
  };
}

function lifeFields({ status, statusReason, proof, history, evidence, replacedBy, untrusted }: Skill) {
  return {
    status: STATUSES[status],
    statusReason,
    evidence,
    ...(proof === undefined ? {} : { proof: proofMessage(proof) }),
    history: (history ?? []).map(changeMessage),
    replacedBy: replacedBy === undefined ? '' : skillResourceName(replacedBy),
    untrusted: untrusted ?? [],
  };
}

/** What tells that a skill is another than before. */
export const briefMessage = ({ name, scope, version, status, digest }: Skill): MessageInitShape<typeof SkillSchema> => ({
  name: skillResourceName(name),
  agent: ownerName(scope),
  user: scope.user ?? '',
  version,
  status: STATUSES[status],
  digest,
});

/** A skill as callers see it. Its tests stay inside: some are made from hidden cases. A reviewer is shown those that are not held out. */
export function skillMessage(skill: Skill): MessageInitShape<typeof SkillSchema> {
  const { kind, version, description, code, tags, sources, scripted, digest } = skill;
  return {
    name: skillResourceName(skill.name),
    agent: ownerName(skill.scope),
    user: skill.scope.user ?? '',
    scope: scopeMessage(skill.scope),
    kind,
    version,
    description,
    code,
    tags,
    sources,
    scripted,
    digest,
    entryPoint: skill.entryPoint ?? '',
    displayName: skill.displayName ?? '',
    category: skill.category ?? '',
    examplePrompts: skill.examplePrompts ?? [],
    model: skill.model ?? '',
    origin: skill.origin ?? '',
    dependencies: (skill.dependencies ?? []).map(dependencyMessage),
    packages: skill.packages ?? [],
    files: (skill.files ?? []).map(({ path }) => path),
    createTime: timestampAt(skill.createdAt),
    updateTime: timestampAt(skill.updatedAt),
    testCount: skill.tests.length,
    ...contractFields(skill),
    ...usageFields(skill),
    ...lifeFields(skill),
  };
}
