import type { Episode, Fact, Skill, Transition } from '@etude/contracts/memory';
import { verdictText } from '@etude/contracts/task';
import { untrustedAmong } from '../trust/sources.js';

/** One searchable row, made from a record or from a part of it. */
export interface SearchEntry {
  readonly kind: 'transition' | 'episode' | 'summary' | 'reflection' | 'fact' | 'skill';
  /** The text that is embedded. Its words are indexed too. */
  readonly indexed: string;
  readonly title: string;
  /** The text for prompts and people. The whole record is stored elsewhere. */
  readonly text: string;
  readonly sources: readonly string[];
  readonly createdAt: number;
  readonly worth: number;
}

const TITLE_CHARS_MAX = 100;
const TEXT_CHARS_MAX = 4_000;
const PART_CHARS_MAX = 1_500;
const CODE_CHARS_MAX = 2_400;
/** Only this much of a text can be searched. The rest is stored, too. */
const INDEXED_CHARS_MAX = 64_000;
const WORTH_OF_SUCCESS = 0.7;
const WORTH_OF_FAILURE = 0.3;
/** Minimum worth of an unused procedure, so that searches for good skills find it too. */
const WORTH_OF_UNTRIED = 0.6;

/** The row of an attempt. A failed attempt is shown without its code, because models would imitate the code. Very long code is left out, too. */
export function transitionEntry(transition: Transition): SearchEntry {
  const { prompt, draft, code, feedback, verdict, reason } = transition;
  const parts = [
    cut(prompt, PART_CHARS_MAX),
    `${verdictText(transition)}: ${reason}`,
    verdict === 'AC' && code.length <= CODE_CHARS_MAX ? fenced(code) : '',
    cut(feedback, 500),
  ];
  return {
    kind: 'transition',
    indexed: searchableText(draft === null ? prompt : `${prompt}\n${draft}`),
    title: titleOf(prompt),
    text: parts.filter((part) => part.trim() !== '').join('\n\n'),
    sources: sourcesOf(transition),
    createdAt: transition.createdAt,
    worth: verdict === 'AC' ? WORTH_OF_SUCCESS : WORTH_OF_FAILURE,
  };
}

export function episodeEntry(episode: Episode): SearchEntry {
  const told = storedTextOf(episode);
  return {
    kind: 'episode',
    indexed: searchableText(told),
    title: titleOf(episode.experience?.context[0] ?? episode.prompt),
    text: shownTextOf(episode, told),
    sources: sourcesOf(episode),
    createdAt: episode.createdAt,
    worth: episode.importance,
  };
}

function shownTextOf({ summary, experience, success, reflection, evaluatorKind }: Episode, told: string): string {
  const outcomes = experience === undefined ? '' : experience.outcomes.map((outcome) => JSON.stringify(outcome)).join('\n');
  const isUnjudged = experience === undefined && evaluatorKind === 'none';
  const ended = success ? (isUnjudged ? 'not judged' : 'success') : 'failure';
  const parts = [
    cut(summary.trim() === '' ? told : summary, TEXT_CHARS_MAX),
    `Outcome: ${ended}${outcomes === '' ? '' : `\n${cut(outcomes, PART_CHARS_MAX)}`}`,
    ...(reflection === null ? [] : [`Reflection: ${cut(reflection, PART_CHARS_MAX)}`]),
  ];
  return parts.join('\n');
}

function sourcesOf({ rolloutId, touched = [] }: Pick<Episode, 'rolloutId' | 'touched'>): string[] {
  return [rolloutId, ...untrustedAmong(touched)];
}

/** The searchable text of an episode. For a rollout it holds only the summary, because its actions are found by its transitions. */
function storedTextOf({ prompt, code, summary, reflection, skillsUsed, experience }: Episode): string {
  const { context, actions, outcomes } = experience ?? { context: [prompt], actions: [summary, code ?? ''], outcomes: [] };
  const parts = [...context, ...actions, ...skillsUsed, ...outcomes.map((outcome) => JSON.stringify(outcome)), reflection ?? ''];
  return parts.filter((part) => part.trim() !== '').join('\n');
}

export type NotedEpisode = Pick<Episode, 'prompt' | 'summary' | 'reflection' | 'rolloutId' | 'createdAt' | 'importance' | 'touched'>;

/** One row for the summary and one for the reflection. An empty text has no row. */
export function episodeEntries(episode: NotedEpisode): SearchEntry[] {
  const { prompt, summary, reflection, createdAt, importance: worth } = episode;
  const shared = { title: titleOf(prompt), sources: sourcesOf(episode), createdAt, worth };
  const row = (kind: 'summary' | 'reflection', text: string): SearchEntry[] =>
    text.trim() === '' ? [] : [{ ...shared, kind, indexed: searchableText(text), text: cut(text, TEXT_CHARS_MAX) }];
  return [...row('summary', summary), ...row('reflection', reflection ?? '')];
}

export function factEntry(fact: Fact): SearchEntry {
  return {
    kind: 'fact',
    indexed: fact.text,
    title: fact.category,
    text: fact.text,
    sources: [...new Set([...fact.episodes, ...(isTold(fact) ? [`facts/${fact.id}`] : []), ...untrustedAmong(fact.touched ?? [])])],
    createdAt: fact.createdAt,
    worth: fact.confidence,
  };
}

/** Category of facts that rollouts found by tools. They are not compared with other facts. Of several about one subject, the newest is valid. */
export const FINDING = 'finding';

/** The `source` of a fact that consolidation learned from the scripted model. */
export const SCRIPTED_SOURCE = 'consolidation (scripted)';
const LEARNED: ReadonlySet<string> = new Set(['experience', 'consolidation', 'agent', FINDING, SCRIPTED_SOURCE]);

/** Whether somebody told the fact. Any caller can send `source: "experience"`, so a learned fact must also name its episodes. */
export const isTold = ({ source, episodes }: Pick<Fact, 'source' | 'episodes'>) => !LEARNED.has(source) || episodes.length === 0;

/** One row for each name, for the description, and for each cue of a skill, members' names included. The best matching row gives the score. */
export function skillEntries(skill: Skill): SearchEntry[] {
  const { name, description, cues, members = [] } = skill;
  const names = [name, ...members.flatMap((member) => member.skill?.name ?? [])];
  const texts = [...new Set([...names, description, ...cues])].filter((text) => text.trim() !== '');
  return texts.map((text) => ({ ...skillEntry(skill), indexed: searchableText(text) }));
}

export function skillEntry(skill: Skill): Omit<SearchEntry, 'indexed'> {
  const { name, version, kind, description, sources, updatedAt, successRate, usage } = skill;
  const [title, text] = [`${name}@${version}`, cut(description, TEXT_CHARS_MAX)];
  const isUntried = kind === 'procedure' && (usage?.used ?? 0) === 0;
  const worth = isUntried ? Math.max(successRate, WORTH_OF_UNTRIED) : successRate;
  return { kind: 'skill', title, text, sources, createdAt: updatedAt, worth };
}

function titleOf(prompt: string): string {
  return cut(prompt.trim().split('\n', 1)[0] ?? '', TITLE_CHARS_MAX);
}

export function searchableText(text: string): string {
  return cut(text, INDEXED_CHARS_MAX);
}

/** Cuts a text, but never within a surrogate pair. */
export function cut(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const end = /[\uD800-\uDBFF]/.test(text[charsMax - 1] ?? '') ? charsMax - 1 : charsMax;
  return text.slice(0, end);
}

/** Code as a Markdown block. Its fence is longer than any fence in the code. Empty if there is no code. */
export function fenced(code: string): string {
  if (code.trim() === '') return '';
  const longest = Math.max(2, ...Array.from(code.matchAll(/`{3,}/g), ([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}python\n${code.trimEnd()}\n${fence}`;
}

/** A text without its Markdown code blocks. An unclosed block extends to the end of the text. */
export function withoutCode(text: string): string {
  if (!text.includes('```')) return text;
  return text
    .replaceAll(/^(`{3,})[^`\n]*\n(?:[\s\S]*?\n)?\1`*[ \t]*$|^`{3,}[^`\n]*\n[\s\S]*(?![\s\S])/gm, '')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim();
}
