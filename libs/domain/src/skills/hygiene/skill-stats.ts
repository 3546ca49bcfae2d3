import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { usesOf } from './prune.js';

/** What an agent's skills are worth to it, all versions together. */
export interface AgentSkillStats {
  readonly agent: string;
  readonly byStatus: Readonly<Partial<Record<SkillStatus, number>>>;
  /** Shown to a model or an agent. */
  readonly offered: number;
  readonly used: number;
  readonly succeeded: number;
  /** Used, and a model had to do the work afterwards. */
  readonly fellBack: number;
}

export interface SkillStats {
  /** By name. */
  readonly agents: readonly AgentSkillStats[];
  readonly mostUsed: readonly Skill[];
  /** Active ones that fail more often than every other time, the worst first. */
  readonly failing: readonly Skill[];
  /** Active ones that were never used nor loaded, the oldest first. */
  readonly unused: readonly Skill[];
}

const LISTED_MAX = 10;
const FAILING_RATE_MAX = 0.5;

export function skillStats(skills: readonly Skill[]): SkillStats {
  const active = skills.filter(({ status }) => status === 'active');
  const failing = active.filter((skill) => usesOf(skill) > 0 && skill.successRate < FAILING_RATE_MAX);
  return {
    agents: [...Map.groupBy(skills, ({ scope }) => scope.agent)].map(([agent, own]) => statsOf(agent, own)).toSorted(byAgent),
    mostUsed: first(
      skills.filter((skill) => usesOf(skill) > 0),
      (a, b) => usesOf(b) - usesOf(a),
    ),
    failing: first(failing, (a, b) => a.successRate - b.successRate),
    unused: first(
      active.filter((skill) => usesOf(skill) === 0 && (skill.usage?.lastUsedAt ?? null) === null),
      (a, b) => a.createdAt - b.createdAt,
    ),
  };
}

function statsOf(agent: string, skills: readonly Skill[]): AgentSkillStats {
  const byStatus: Partial<Record<SkillStatus, number>> = {};
  for (const { status } of skills) byStatus[status] = (byStatus[status] ?? 0) + 1;
  const sum = (count: (skill: Skill) => number) => skills.reduce((total, skill) => total + count(skill), 0);
  return {
    agent,
    byStatus,
    offered: sum(({ usage }) => usage?.offered ?? 0),
    used: sum(usesOf),
    succeeded: sum(({ executionCount }) => executionCount),
    fellBack: sum(({ usage }) => usage?.fellBack ?? 0),
  };
}

const byAgent = (a: AgentSkillStats, b: AgentSkillStats) => (a.agent < b.agent ? -1 : 1);

function first(skills: readonly Skill[], order: (a: Skill, b: Skill) => number): readonly Skill[] {
  return skills.toSorted((a, b) => order(a, b) || (a.name < b.name ? -1 : 1)).slice(0, LISTED_MAX);
}
