import { randomUUID } from 'node:crypto';
import { GetSkillStatsResponse_AgentStatsSchema, type PruneSkillsRequest, type Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { OwnerAgent, TENANT_AGENT } from '@etude/contracts/ids';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { type PlannedPrune, type PrunePolicy, pruneSkills, undoPrune } from '@etude/domain/skills/life/prune';
import { revokedBy, revokeSource } from '@etude/domain/skills/life/revoke-source';
import { skillStats } from '@etude/domain/skills/life/usage';
import { learnedRecords } from '@etude/memory/layers/fact-records';
import type { Memory } from '@etude/memory/memory';
import { z } from 'zod';
import type { CallContext } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { type ClaimedRequest, claimOnce, once, type Work } from '../calls/once.js';
import { skillMessage } from '../readers/skill-message.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { toWire } from '../wire/messages.js';
import { optionalRequestId } from '../wire/names.js';
import { invalidField, parseField } from '../wire/validation.js';

const DAYS_MAX = 36_500;
const Days = z.number().int().min(0).max(DAYS_MAX);
const Uses = z.number().int().min(0).max(1_000_000);
const Fraction = z.number().min(0, 'must be between 0 and 1').max(1, 'must be between 0 and 1');
const Reason = z.string().trim().max(1_000);
const PruneId = z.string().regex(/^p[0-9a-f]{16}$/, 'must be the id that pruning answered, such as "p0123456789abcdef"');
const USES_MIN = 5;

/** Named of what is kept. */
const CALLERS_MAX = 10;

function prunedMessage({ skill, reason }: PlannedPrune) {
  const { name = '', agent = '', version = 0 } = skillMessage(skill);
  return { name, agent, version, reason };
}

/** What reviewers do with the skills of their tenant as a whole: `etude.v1.Skills`. */
export const hygieneCalls = {
  async pruneSkills(request, call, deps) {
    const { tenant, name } = call;
    const agent = ownerOrAll(request.agent);
    const policy = policyOf(request);
    const pruneId = pruneIdOf(tenant, optionalRequestId(request.requestId));
    const memory = await deps.memory.open();
    const claimed = await claimTenants(memory, call, { method: 'PruneSkills', request });
    const input = { tenant, agent, policy, pruneId, by: name, dryRun: request.dryRun, at: claimed.at };
    const { pruned, kept } = await changeOnce(claimed, request.dryRun, {
      act: () => pruneSkills(input, memory),
      again: () => pruneSkills({ ...input, policy: {} }, memory),
    });
    return {
      pruned: pruned.map(prunedMessage),
      kept: kept.map(({ calledBy, ...planned }) => ({
        ...prunedMessage(planned),
        calledBy: calledBy.slice(0, CALLERS_MAX).map((caller) => `${caller.name}@${caller.version} of "${caller.scope.agent}"`),
      })),
      pruneId: request.dryRun || pruned.length === 0 ? '' : pruneId,
    };
  },

  async undoPrune(request, call, deps) {
    const { tenant, name } = call;
    const pruneId = parseField(PruneId, request.pruneId, 'prune_id');
    const memory = await deps.memory.open();
    const claimed = await claimTenants(memory, call, { method: 'UndoPrune', request });
    const { skills, left } = await undoPrune({ tenant, pruneId, by: name, at: claimed.at }, memory);
    return { skills: skills.map(skillMessage), left: left.map(prunedMessage) };
  },

  async revokeSource(request, call, deps) {
    const { tenant, name, roles } = call;
    const reason = parseField(Reason, request.reason, 'reason');
    const memory = await deps.memory.open();
    const claimed = await claimTenants(memory, call, { method: 'RevokeSource', request });
    const global = roles.includes('operator');
    const input = { tenant, source: request.source, reason, by: name, dryRun: request.dryRun, global, at: claimed.at };
    const stores = { procedural: memory.procedural, learned: learnedRecords(memory.store) };
    const { skills, facts } = await changeOnce(claimed, request.dryRun, {
      act: () => revokeSource(input, stores),
      again: () => revokedBy(input, stores),
    });
    return { skills: skills.map(skillMessage), facts: [...facts] };
  },

  async getSkillStats(request, call, deps) {
    const { tenant } = call;
    const { procedural } = await deps.memory.open();
    const stats = await skillStats(procedural.every({ tenant, agent: ownerOrAll(request.agent) }));
    const agents = stats.agents.map(({ offered, used, succeeded, fellBack, ...agent }) => {
      const counts = { offeredCount: offered, usedCount: used, succeededCount: succeeded, fellBackCount: fellBack };
      return toWire(GetSkillStatsResponse_AgentStatsSchema, { ...agent, ...counts });
    });
    return {
      agents,
      mostUsed: stats.mostUsed.map(skillMessage),
      failing: stats.failing.map(skillMessage),
      unused: stats.unused.map(skillMessage),
    };
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

/** What is done to skills of many owners is claimed as everybody's of the tenant. @throws EtudeError ALREADY_EXISTS */
function claimTenants(
  memory: Memory,
  call: CallContext,
  { method, request }: { readonly method: string; readonly request: { readonly requestId: string } },
): Promise<ClaimedRequest> {
  const { tenant } = call;
  const identified = { tenant, requestId: request.requestId, method, body: { ...request } };
  return claimOnce(memory, identified, { scope: { agent: TENANT_AGENT, user: null } });
}

/** What is asked for, once; a dry run changes nothing, and says each time what it finds. */
function changeOnce<T>(claimed: ClaimedRequest, isDryRun: boolean, { act, again }: Pick<Work<T>, 'act' | 'again'>): Promise<T> {
  return isDryRun ? act() : once(claimed, { act, again, resultOf: () => '' });
}

/** An agent, or "@user" or "@tenant" for what is shared; empty: all of the tenant. */
const ownerOrAll = (agent: string) => (agent === '' ? null : parseField(OwnerAgent, agent, 'agent'));

/** Nothing that is zero is looked at. @throws EtudeError INVALID_ARGUMENT where nothing would be looked at at all */
function policyOf(request: PruneSkillsRequest): PrunePolicy {
  const unusedDays = parseField(Days, request.unusedDays, 'unused_days');
  const rateMax = parseField(Fraction, request.failingRateMax, 'failing_rate_max');
  const usesMin = parseField(Uses, request.failingUsesMin, 'failing_uses_min') || USES_MIN;
  const supersededDays = parseField(Days, request.supersededDays, 'superseded_days');
  if (unusedDays === 0 && rateMax === 0 && supersededDays === 0)
    throw invalidField('unused_days', 'or failing_rate_max or superseded_days must be above 0: they say what is pruned');
  return {
    ...(unusedDays > 0 ? { unusedDays } : {}),
    ...(rateMax > 0 ? { failing: { rateMax, usesMin } } : {}),
    ...(supersededDays > 0 ? { supersededDays } : {}),
  };
}

/** The same request has the same id, so that a repeat finishes what was begun. */
function pruneIdOf(tenant: string, requestId: string | null): string {
  return `p${contentDigest([tenant, requestId ?? randomUUID()]).slice(0, 16)}`;
}
