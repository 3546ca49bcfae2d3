import type { RecalledItem, Skill } from '@etude/contracts/memory';

/**
 * The kinds of records from which something was learned. A skill's id is "name@version". `procedures` are procedures in words. An untrusted task or a
 * marked skill has its own kind, because its id alone doesn't show that it is not trusted.
 */
const SOURCE_KINDS = [
  'tasks',
  'episodes',
  'documents',
  'conversations',
  'facts',
  'procedures',
  'wantedSkills',
  'users',
  'skills',
  'imports',
  'untrustedTasks',
  'markedSkills',
] as const;
type SourceKind = (typeof SOURCE_KINDS)[number];

export interface Source {
  readonly kind: SourceKind;
  readonly id: string;
}

const SOURCE = /^([A-Za-z]+)\/([A-Za-z0-9][A-Za-z0-9._@:-]{0,199})$/;
/** Matches the ids of rollouts' episodes, such as "t0192f0c8a1b2-r1" or "t0192f0c8a1b2-r1.episode". Told episodes have other ids. */
const OF_A_ROLLOUT = /^(t[0-9a-z]{8,40}-r[0-9]{1,6})(?:\..*)?$/;

/** Reads the name of a source. null for a text that names no record, such as a text with line breaks. */
export function sourceOf(name: string): Source | null {
  const [, kind = '', id = ''] = SOURCE.exec(name) ?? [];
  if ((SOURCE_KINDS as readonly string[]).includes(kind)) return { kind: kind as SourceKind, id };
  return OF_A_ROLLOUT.test(name) ? { kind: 'episodes', id: name } : null;
}

/** The rollout to which this episode belongs. null for an episode that was told. */
export function rolloutOf(episode: string): string | null {
  return OF_A_ROLLOUT.exec(episode)?.[1] ?? null;
}

/** The name of an episode among sources: the id of its rollout, or its own id if it has no rollout. */
export function episodeKey(episode: string): string {
  return rolloutOf(episode) ?? episode;
}

/**
 * The reasons why something with these sources is never approved automatically. Empty if approval may be automatic. Documents, imports, words of
 * outside agents, and unknown names are not trusted. More sources can only reduce trust.
 */
export function reasonsNotTrusted(sources: readonly string[]): string[] {
  return [...new Set(sources.flatMap(reasonAgainst))];
}

const REASONS: Readonly<Partial<Record<SourceKind, (id: string) => string>>> = {
  documents: (id) => `it was learned where text of documents/${id} was read`,
  conversations: (id) => `it was learned where words of conversations/${id} were read`,
  facts: (id) => `it was learned where facts/${id} was read, which was told`,
  procedures: (id) => `it rests on the words of procedures/${id}, which were told`,
  imports: (id) => `it came in with imports/${id}`,
  untrustedTasks: (id) => `it was learned from tasks/${id}, which came from where nobody is trusted`,
  markedSkills: (id) => `it was learned in sight of skills/${id}, which is marked`,
};

function reasonAgainst(name: string): string[] {
  const source = sourceOf(name);
  if (source === null) return ['it names a source that does not exist, so its origin is unknown'];
  const { kind, id } = source;
  if (kind === 'episodes' && rolloutOf(id) === null) return [`it was learned where episodes/${id} was read, which an outside agent told`];
  const reason = REASONS[kind]?.(id);
  return reason === undefined ? [] : [reason];
}

const NAMED = /\b(?:tasks|episodes|documents|conversations|facts|procedures|skills|imports)\/[A-Za-z0-9][A-Za-z0-9._@:-]*/g;

/** The sources that these marks name. The next version of a skill, for example, has the mark of the earlier version, but not the source. */
export function sourcesOfMarks(marks: readonly string[]): string[] {
  return marks.flatMap((mark) => {
    const named = mark.match(NAMED) ?? [];
    const meant = named.flatMap((name) => [name, name.replace(/^tasks/, 'untrustedTasks').replace(/^skills/, 'markedSkills')]);
    return meant.filter((name) => reasonsNotTrusted([name]).includes(mark));
  });
}

/** The skill's marks: stored marks, and marks that its sources give it. Sources are read again, because a stored mark may be missing. */
export function marksOf({ untrusted = [], sources }: Pick<Skill, 'sources' | 'untrusted'>): readonly string[] {
  return [...new Set([...untrusted, ...reasonsNotTrusted(sources)])];
}

export function withMarks<S extends Pick<Skill, 'sources' | 'untrusted'>>(skill: S): S {
  const untrusted = marksOf(skill);
  return untrusted.length === 0 ? skill : { ...skill, untrusted };
}

/** Maximum number of untrusted sources that are kept with a memory. One is enough for a mark. Revoking a source also follows episodes. */
const CARRIED_MAX = 32;

/**
 * A memory that a prompt or a caller gets. The `sources` of a fact are its supporting records. The `sources` of other memories include the
 * untrusted records that were read when the memory was made.
 */
export type Shown = Pick<RecalledItem, 'id' | 'kind'> & { readonly sources?: readonly string[] | undefined };

/**
 * The sources of anything learned from a prompt with these memories, each once: documents, episodes, skills, and the records that support
 * facts. Untrusted sources of the memories are included, so that a mark outlasts the text that caused it.
 */
export function touchedSources(shown: readonly Shown[]): string[] {
  return [...new Set(shown.flatMap((one) => [...touched(one), ...untrustedAmong(one.sources ?? [])]))];
}

/** The untrusted sources among these names. A memory keeps the untrusted sources that were read when it was made. */
export function untrustedAmong(names: readonly string[]): string[] {
  const untrusted = names.filter((name) => sourceOf(name) !== null && reasonsNotTrusted([name]).length > 0);
  return [...new Set(untrusted)].slice(0, CARRIED_MAX);
}

function touched(shown: Shown): string[] {
  if (shown.kind === 'fact') return (shown.sources ?? []).map(restsOn);
  const name = nameOfShown(shown);
  return name === null ? [] : [name];
}

/** The name of a memory among sources. A part of a document, conversation or episode has the name of the whole. */
export function nameOfShown({ id, kind }: Pick<Shown, 'id' | 'kind'>): string | null {
  if (kind === 'fact') return `facts/${id}`;
  if (kind === 'document') return `documents/${id}`;
  if (kind === 'chunk') return `documents/${id.replace(/\.[^.]*$/, '')}`;
  if (kind === 'turn') return `conversations/${id.replace(/\.[^.]*$/, '')}`;
  if (kind === 'skill') return `skills/${id}`;
  return EPISODE_KINDS.has(kind) ? `episodes/${episodeKey(id)}` : null;
}

const EPISODE_KINDS: ReadonlySet<string> = new Set(['transition', 'episode', 'summary', 'reflection']);

export function recordOfSource(source: string): string {
  return restsOn(source)
    .replace(/^untrustedTasks/, 'tasks')
    .replace(/^markedSkills/, 'skills');
}

/** The full name of a source. A fact names its episodes only by their ids. */
function restsOn(name: string): string {
  const source = sourceOf(name);
  if (source !== null && source.kind !== 'episodes') return name;
  return `episodes/${episodeKey(source?.id ?? name)}`;
}
