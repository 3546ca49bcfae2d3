import { EtudeError } from '@etude/contracts/errors';
import type { ServerCall } from '@etude/contracts/grpc';
import type { Skill } from '@etude/contracts/memory';
import type { AgentSettingsReader } from '@etude/domain/ports/agent-settings';
import type { MemoryOutbox, ProceduralMemory } from '@etude/domain/ports/memory';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { mayLearn } from '@etude/domain/skills/life/may-learn';
import { isReadBy, ownersFor } from '@etude/domain/skills/life/owners';
import { contextOf } from '../calls/call-context.js';
import { requireAuthor } from '../skills/skill-author.js';

export interface ProposalDeps {
  readonly procedural: Pick<ProceduralMemory, 'versions' | 'countNames'>;
  readonly settings: AgentSettingsReader;
  readonly outbox: MemoryOutbox;
}

/**
 * Takes the skills of one import as if each was registered. They are stored by a worker, which verifies them before they can run.
 *
 * @throws EtudeError from the answered function: PERMISSION_DENIED for what more agents would read, FAILED_PRECONDITION where the
 *   agent learns no skills or has as many as it may, or the skill calls what its readers can't read
 */
export function proposedSkills(call: ServerCall, { procedural, settings, outbox }: ProposalDeps): (skill: Skill) => Promise<void> {
  const { tenant } = contextOf(call);
  /** Names of what this import brings, by owner: none of it is counted yet. */
  const planned = new Map<string, Set<string>>();
  return async (skill) => {
    requireAuthor(call, skill);
    const { agent } = skill.scope;
    const names = planned.get(agent) ?? new Set<string>();
    const { settings: own } = await settings.get(skill.scope.tenant, agent);
    const others = names.has(skill.name) ? names.size - 1 : names.size;
    if (!own.enabled) throw refusal(`agent "${agent}" learns no skills: its setting procedural_memory_settings.enabled is false`);
    if (!(await mayLearn(skill, { ...own, autoRegisterSkills: true }, procedural, others)))
      throw refusal(`"${agent}" has as many skills as it may have (max_skills is ${own.maxSkills})`);
    await requireReadablePins(skill, procedural);
    await outbox.put(tenant, `imported.${contentDigest(skill)}`, { kind: 'skill', skill });
    planned.set(agent, names.add(skill.name));
  };
}

/** What is not there yet may come in with the same lines; verification looks again. @throws EtudeError FAILED_PRECONDITION */
async function requireReadablePins({ name, scope, dependencies = [] }: Skill, procedural: ProposalDeps['procedural']): Promise<void> {
  const owners = ownersFor(scope);
  for (const pin of dependencies) {
    const isOwned = owners.some(({ tenant, agent }) => pin.tenant === tenant && pin.agent === agent);
    const versions = isOwned ? await procedural.versions(pin, pin.name) : [];
    const pinned = versions.find(({ version }) => version === pin.version);
    if (!isOwned || (pinned !== undefined && !isReadBy(pinned.scope, scope)))
      throw refusal(`${name} calls ${pin.name}@${pin.version} of "${pin.agent}", which not everybody who reads ${name} can read`);
  }
}

const refusal = (message: string) => new EtudeError('FAILED_PRECONDITION', message);
