import type { Episode, Fact, Skill } from '@etude/contracts/memory';
import type { AgentSettingsReader } from '../ports/agent-settings.js';
import type { ProceduralMemory } from '../ports/memory.js';
import { factId } from '../facts/fact-plan.js';
import { contentDigest } from '../skills/content-digest.js';
import { mayLearn } from '../skills/life/register-skill.js';
import { pinnedToImports } from '../skills/proof/bundle-code.js';
import { isReadBy } from '../skills/life/find-skill.js';
import { untrustedAmong } from '../trust/sources.js';
import { SCRIPTED_SOURCE } from '../retrieval/entries.js';
import { type Learned, learnFromEpisodes, type LearningDeps } from './learn-from-episodes.js';
import { type Generalised, generalise } from './generalise.js';
import { type EpisodePage, tellsAlone } from './pages.js';
import { procedureFromActions, proposeSkill } from './propose-skill.js';

export interface PlanDeps extends LearningDeps {
  readonly settings: AgentSettingsReader;
  readonly procedural: ProceduralMemory;
}

export interface PlannedUnit {
  /** Made from the unread episodes, so that the same page has the same id. */
  readonly unitId: string;
  readonly page: EpisodePage;
  /** null if the model wasn't asked. */
  readonly learned: Learned | null;
  readonly facts: readonly Fact[];
  readonly general: Generalised;
  /** The general skill, else a skill from repeated success, else a procedure from actions. */
  readonly skill: Skill | null;
}

/** The id under which memory notes that an episode was read. */
export const readMark = ({ id }: Pick<Episode, 'id'>) => `read.${id}`;

/**
 * Plans one page without changing anything. The model is asked once, unless the page only confirms a known lesson. For a general skill, it may be
 * asked once more. A skill that an `earlier` unit proposes is not proposed again.
 *
 * @param skills every version of the tenant's skills. Skills that the page's owner can't read are ignored
 */
export async function planUnit(
  page: EpisodePage,
  { now, earlier, skills }: { now: number; earlier: readonly PlannedUnit[]; skills: readonly Skill[] },
  deps: PlanDeps,
  signal: AbortSignal,
): Promise<PlannedUnit> {
  const { scope } = page.unread[0]!;
  const learned = page.confirms ? null : await learnFromEpisodes(page, deps, signal);
  const { name: called, description, scenarios } = learned?.data?.skill ?? { name: '', description: '', scenarios: [] };
  const known = [...skills, ...earlier.flatMap(({ skill }) => skill ?? [])].filter((skill) => isReadBy(skill.scope, scope));
  const how = { called, description, scenarios, scripted: learned?.scripted === true, at: now };
  const general = await generalise(page, known, now, deps, signal);
  const proposed = general.skill ?? (page.group === null ? null : proposeSkill(page.group, known, how));
  const isLearned = proposed !== null && (await isWanted(proposed, earlier, deps));
  return {
    unitId: `consolidation.${contentDigest([scope, page.unread.map(({ id }) => id).toSorted()]).slice(0, 40)}`,
    page,
    learned,
    general,
    facts: learned === null ? [] : factsOf(learned, page.episodes, now),
    skill: isLearned ? await pinnedToImports(proposed, deps.procedural) : procedureFromActions(page.group, known, now),
  };
}

async function isWanted(proposed: Skill, earlier: readonly PlannedUnit[], { settings, procedural }: PlanDeps): Promise<boolean> {
  const { tenant, agent, user } = proposed.scope;
  const planned = earlier.filter(({ skill }) => skill?.scope.agent === agent && skill.scope.user === user).length;
  return mayLearn(proposed, (await settings.get(tenant, agent)).settings, procedural, planned);
}

/**
 * The facts of an answer with the episodes that support them. A single episode can support only a rule about a named thing. Each fact has the
 * untrusted sources of all shown episodes, because an injected text may make the model name other episodes.
 */
function factsOf({ data, scripted }: Learned, shown: readonly Episode[], now: number): Fact[] {
  const { scope } = shown[0]!;
  const touched = untrustedAmong(shown.flatMap((episode) => [`episodes/${episode.id}`, ...(episode.touched ?? [])]));
  const facts = (data?.facts ?? []).flatMap(({ text, category, confidence, subject, experiences }): Fact[] => {
    const sources = experiences === undefined ? shown : shown.filter((_, at) => experiences.includes(at));
    const isNamed = typeof subject === 'string';
    const isSupported = sources.length > 1 || (isNamed && sources.some(tellsAlone));
    if (!isSupported) return [];
    const told: Fact = {
      id: factId(scope, text),
      scope,
      text,
      category,
      confidence,
      source: scripted ? SCRIPTED_SOURCE : 'consolidation',
      episodes: sources.map(({ id }) => id),
      ...(touched.length === 0 ? {} : { touched }),
      support: sources.length,
      accessCount: 0,
      createdAt: now,
      ...(isNamed ? { subject } : {}),
    };
    return [told];
  });
  return [...new Map(facts.map((fact) => [fact.id, fact])).values()];
}

export function describeUnit({ page: { episodes, group }, learned, facts, general, skill }: PlannedUnit): string[] {
  const head = `${group === null ? 'page' : 'group'} of ${episodes.length} (${firstWords(episodes[0]!.prompt)})`;
  const all = from(episodes.map(({ id }) => id));
  const marked = learned?.scripted ? ' (scripted)' : '';
  const lines = facts.map((fact) => `fact, ${fact.category}, confidence ${fact.confidence}${marked}: ${fact.text}${from(fact.episodes)}`);
  if (learned?.data === null) lines.push(`${head}: no facts, the model failed: ${learned.failure}${all}`);
  else if (learned === null) lines.push(`${head}: nothing new, the model is not asked${all}`);
  else if (facts.length === 0) lines.push(`${head}: no facts${all}`);
  if (general.asked?.data === null) lines.push(`${head}: nothing generalised, the model failed: ${general.asked.failure}${all}`);
  return skill === null ? lines : [...lines, `${titleOf(skill)}: ${firstWords(skill.description)}${from(skill.sources)}`];
}

function titleOf({ kind, name, successRate, tests, scripted }: Skill): string {
  if (kind === 'procedure') return `procedure ${name}, success rate ${successRate.toFixed(2)}`;
  return `skill ${name}, ${tests.length} tests${scripted ? ' (scripted)' : ''}`;
}

function from(ids: readonly string[]): string {
  return ` [from ${ids.join(', ')}]`;
}

function firstWords(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ');
  return line.length <= 80 ? line : `${line.slice(0, 79)}…`;
}
