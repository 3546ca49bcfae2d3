import { randomUUID } from 'node:crypto';
import {
  GetSkillStatsResponse_AgentStatsSchema,
  type PruneSkillsRequest,
  PruneSkillsRequestSchema,
  type Skills,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { OwnerAgent, TENANT_AGENT } from '@etude/contracts/ids';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { type PlannedPrune, type PrunePolicy, pruneSkills, undoPrune } from '@etude/domain/skills/life/prune';
import { revokeSource } from '@etude/domain/skills/life/revoke-source';
import { skillStats } from '@etude/domain/skills/life/usage';
import { learnedRecords } from '@etude/memory/layers/source-index';
import { z } from 'zod';
import type { Handlers } from '../calls/calls.js';
import { once } from '../calls/once.js';
import { skillMessage } from '../readers/readers.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { fromWire, toWire } from '@etude/contracts/wire/messages';
import { optionalRequestId } from '../wire/names.js';
import { invalidField, parseField } from '@etude/contracts/wire/validation';

const Days = z.number().int().min(0).max(36_500);
const Policy = z.object({
  unusedDays: Days,
  failingRateMax: z.number().min(0, 'must be between 0 and 1').max(1, 'must be between 0 and 1'),
  failingUsesMin: z.number().int().min(1).max(1_000_000).default(5),
  supersededDays: Days,
});
const Reason = z.string().trim().max(1_000);
const PruneId = z.string().regex(/^p[0-9a-f]{16}$/, 'must be a prune_id that PruneSkills returned, such as "p0123456789abcdef"');
const CALLERS_MAX = 10;
/** These calls change skills of many owners, so the claims of their request ids belong to the whole tenant. */
const EVERYBODYS = { scope: { agent: TENANT_AGENT, user: null } };

function prunedMessage({ skill, reason }: PlannedPrune) {
  const { name = '', agent = '', version = 0 } = skillMessage(skill);
  return { name, agent, version, reason };
}

/** Calls of `etude.v1.Skills` by which reviewers maintain all skills of their tenant. */
export const hygieneCalls = {
  async pruneSkills(request, call, deps) {
    const { tenant, name: by } = call;
    const { requestId, dryRun } = request;
    // Derived from the request id, so that a repeat completes the first pruning.
    const pruneId = `p${contentDigest([tenant, optionalRequestId(requestId) ?? randomUUID()]).slice(0, 16)}`;
    const input = { tenant, agent: ownerOrAll(request.agent), policy: policyOf(request), pruneId, by, dryRun };
    const memory = await deps.memory.open();
    const prune = (policy: PrunePolicy, at: number) => pruneSkills({ ...input, policy, at }, memory);
    const { pruned, kept } = await once(memory, { tenant, requestId, method: 'PruneSkills', body: { ...request } }, EVERYBODYS, {
      act: ({ at }) => prune(input.policy, at),
      again: (_result, { at }) => prune(dryRun ? input.policy : {}, at),
    });
    return {
      pruned: pruned.map(prunedMessage),
      kept: kept.map(({ calledBy, ...planned }) => ({
        ...prunedMessage(planned),
        calledBy: calledBy.slice(0, CALLERS_MAX).map((caller) => `${caller.name}@${caller.version} of "${caller.scope.agent}"`),
      })),
      pruneId: dryRun || pruned.length === 0 ? '' : pruneId,
    };
  },

  async undoPrune(request, call, deps) {
    const { tenant, name: by } = call;
    const pruneId = parseField(PruneId, request.pruneId, 'prune_id');
    const memory = await deps.memory.open();
    const undo = ({ at }: { readonly at: number }) => undoPrune({ tenant, pruneId, by, at }, memory);
    const identified = { tenant, requestId: request.requestId, method: 'UndoPrune', body: { ...request } };
    const { skills, left } = await once(memory, identified, EVERYBODYS, { act: undo });
    return { skills: skills.map(skillMessage), left: left.map(prunedMessage) };
  },

  async revokeSource(request, call, deps) {
    const { tenant, name: by, roles } = call;
    const { source, dryRun, requestId } = request;
    const reason = parseField(Reason, request.reason, 'reason');
    const memory = await deps.memory.open();
    const stores = { procedural: memory.procedural, learned: learnedRecords(memory.store) };
    const input = { tenant, source, reason, by, dryRun, global: roles.includes('operator') };
    const { skills, facts } = await once(memory, { tenant, requestId, method: 'RevokeSource', body: { ...request } }, EVERYBODYS, {
      act: ({ at }) => revokeSource({ ...input, at }, stores),
      // A repeat changes nothing. It lists the skills as they are now, and facts that were learned since then.
      again: (_result, { at }) => revokeSource({ ...input, dryRun: true, at }, stores),
    });
    return { skills: skills.map(skillMessage), facts: [...facts] };
  },

  async getSkillStats(request, call, deps) {
    const { procedural } = await deps.memory.open();
    const stats = await skillStats(procedural.every({ tenant: call.tenant, agent: ownerOrAll(request.agent) }));
    const agents = stats.agents.map((agent) => toWire(GetSkillStatsResponse_AgentStatsSchema, agent));
    const { mostUsed, failing, unused } = stats;
    return { agents, mostUsed: mostUsed.map(skillMessage), failing: failing.map(skillMessage), unused: unused.map(skillMessage) };
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

/** An agent, or "@user" or "@tenant" for shared skills; empty: all owners of the tenant. */
const ownerOrAll = (agent: string) => (agent === '' ? null : parseField(OwnerAgent, agent, 'agent'));

/** @throws EtudeError INVALID_ARGUMENT if all rules are off */
function policyOf(request: PruneSkillsRequest): PrunePolicy {
  const policy = fromWire(Policy, PruneSkillsRequestSchema, request);
  const { unusedDays, failingRateMax, supersededDays } = policy;
  if (unusedDays > 0 || failingRateMax > 0 || supersededDays > 0) return policy;
  throw invalidField('unused_days', 'or failing_rate_max or superseded_days must be above 0');
}
