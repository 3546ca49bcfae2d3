import { EtudeError } from '@etude/contracts/errors';
import { OutsideServers } from '@etude/contracts/outside-tools';
import { APPROVAL_MODES, ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { TaskStrategy } from '@etude/contracts/task';
import type { AgentSettings, AgentSettingsReader } from '@etude/domain/ports/agent-settings';
import { contentDigest } from '@etude/domain/skills/content-digest';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { parseOr, parseStored } from '../jobs/job-end.js';
import type { RedisKeys } from '../redis/keys.js';
import { namesAfter } from '../redis/pages.js';
import { runScript, unlessDamaged, whileRedisAnswers } from '../redis/redis.js';

/** The JSON part of a stored text "<ms of the change> <JSON>". `revision` makes every text unique, even if a change undoes an earlier one. */
const Stored = z.object({
  revision: z.number().int(),
  settings: ProceduralMemorySettings,
  strategy: TaskStrategy.default('attempts'),
  mcpServers: OutsideServers.default([]),
});

export type AgentChange = Partial<ProceduralMemorySettings & Pick<AgentSettings, 'strategy' | 'mcpServers'>>;

/** The settings of agents. An agent without settings of its own has the installation's. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class AgentSettingsStore implements AgentSettingsReader {
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    private readonly installation: ProceduralMemorySettings,
  ) {}

  async get(tenant: string, agent: string): Promise<AgentSettings> {
    return this.#read(agent, await this.#text(tenant, agent));
  }

  /**
   * Changes some settings of an agent. From then on the agent has its own value of every setting.
   *
   * @param options.etag of the settings that the caller read
   * @throws EtudeError ABORTED if the settings changed since they were read, INVALID_ARGUMENT if a setting is out of bounds
   */
  async update(
    tenant: string,
    agent: string,
    { strategy, mcpServers, ...change }: AgentChange,
    { etag }: { readonly etag?: string | undefined } = {},
  ): Promise<AgentSettings> {
    for (;;) {
      const before = await this.#text(tenant, agent);
      const known = this.#read(agent, before);
      const { revision } = before === null ? { revision: 0 } : storedIn(agent, before);
      if (etag !== undefined && etag !== known.etag)
        throw new EtudeError(
          'ABORTED',
          `the settings of agent "${agent}" changed since they were read; read them again and repeat the change`,
          {
            field: 'etag',
          },
        );
      const changed = {
        revision: revision + 1,
        settings: { ...known.settings, ...change },
        strategy: strategy ?? known.strategy,
        mcpServers: mcpServers ?? known.mcpServers,
      };
      const next = JSON.stringify(parseOr(Stored, changed, 'INVALID_ARGUMENT', `settings of agent "${agent}"`));
      const args = [agent, before ?? '', next];
      const written = await runScript<string | null>(this.redis, 'putAgentSettings', [this.keys.agents(tenant)], args);
      if (written !== null) return this.#read(agent, written);
    }
  }

  /** Agents that have settings of their own, sorted by name, from the first name greater than `after`. */
  async list(tenant: string, { limit, after = '' }: { limit: number; after?: string }): Promise<readonly AgentSettings[]> {
    const all = await whileRedisAnswers(this.redis, this.redis.hgetall(this.keys.agents(tenant)));
    const read = async (agent: string) => this.#read(agent, all[agent] ?? null);
    const look = (agent: string) => unlessDamaged(this.redis, `settings of agent ${agent} in ${tenant}`, () => read(agent));
    const found = await Promise.all(namesAfter(Object.keys(all), after, Infinity).map(look));
    return found.filter((settings) => settings !== undefined).slice(0, limit);
  }

  #text(tenant: string, agent: string): Promise<string | null> {
    return whileRedisAnswers(this.redis, this.redis.hget(this.keys.agents(tenant), agent));
  }

  #read(agent: string, text: string | null): AgentSettings {
    if (text === null) {
      const settings = this.installation;
      return { agent, settings, strategy: 'attempts', mcpServers: [], isSet: false, updatedAt: 0, etag: contentDigest(settings) };
    }
    const { revision: _, ...stored } = storedIn(agent, text);
    return { agent, ...stored, isSet: true, updatedAt: updatedAt(text), etag: contentDigest(text) };
  }
}

/** Time of the last change in a stored text, ms since 1970 by Redis. */
export function updatedAt(text: string): number {
  return Number(text.slice(0, text.indexOf(' ')));
}

function storedIn(agent: string, text: string): z.infer<typeof Stored> {
  return parseStored(Stored, JSON.parse(text.slice(text.indexOf(' ') + 1)), 'INTERNAL', `the settings of agent "${agent}"`);
}

const flag = () =>
  z.stringbool({ truthy: ['true', '1', 'yes', 'on'], falsy: ['false', '0', 'no', 'off'], error: 'must be true or false' }).optional();
const share = () => z.coerce.number({ error: 'must be a number from 0 to 1' }).min(0).max(1).optional();

/** The settings of agents without own settings. Every service needs the same values. `ProceduralMemorySettings` has the defaults. */
export const agentSettingsConfig = z.object({
  /** Whether agents learn, offer and use skills at all. */
  ETUDE_SKILLS_ENABLED: flag(),
  /** Whether rollouts and consolidation register working code as skills. */
  ETUDE_SKILLS_AUTO_REGISTER: flag(),
  /** Minimum confidence for an approval in the approval mode "threshold". */
  ETUDE_SKILLS_CONFIDENCE_MIN: share(),
  /** Most skills of an agent, not counting rejected and archived skills; 0: no limit. */
  ETUDE_SKILLS_MAX: z.coerce.number().int().min(0).max(1_000_000).optional(),
  /** Minimum similarity at which a skill is tried before new code is written. */
  ETUDE_SKILLS_SEARCH_SIMILARITY_MIN: share(),
  /** Whether a fitting skill is tried before the model is asked. */
  ETUDE_SKILLS_PREFER: flag(),
  /** Who approves a verified skill; see docs/skills.md. */
  ETUDE_SKILLS_APPROVAL: z
    .enum(APPROVAL_MODES, {
      error:
        'must be "automatic" (verified skills are used at once), "review" (they wait for approval) or "threshold" (they wait below ETUDE_SKILLS_CONFIDENCE_MIN)',
    })
    .optional(),
});
export type AgentSettingsConfig = z.infer<typeof agentSettingsConfig>;

export function installationSettings(config: AgentSettingsConfig): ProceduralMemorySettings {
  return ProceduralMemorySettings.parse({
    enabled: config.ETUDE_SKILLS_ENABLED,
    autoRegisterSkills: config.ETUDE_SKILLS_AUTO_REGISTER,
    skillRegistrationConfidenceThreshold: config.ETUDE_SKILLS_CONFIDENCE_MIN,
    maxSkills: config.ETUDE_SKILLS_MAX,
    skillSearchThreshold: config.ETUDE_SKILLS_SEARCH_SIMILARITY_MIN,
    preferSkills: config.ETUDE_SKILLS_PREFER,
    approvalMode: config.ETUDE_SKILLS_APPROVAL,
  });
}
