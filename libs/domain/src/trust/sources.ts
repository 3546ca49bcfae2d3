import type { RecalledItem, Skill } from '@etude/contracts/memory';

/**
 * Where something was learned. Ids are those of the records; a skill's is "name@version". `procedures` are words that were told.
 * `untrustedTasks` and `markedSkills` are tasks and skills whose own names don't say that they are not trusted.
 */
export const SOURCE_KINDS = [
  'tasks',
  'episodes',
  'documents',
  'facts',
  'procedures',
  'wantedSkills',
  'users',
  'skills',
  'imports',
  'untrustedTasks',
  'markedSkills',
] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

export interface Source {
  readonly kind: SourceKind;
  readonly id: string;
}

const SOURCE = /^([A-Za-z]+)\/([A-Za-z0-9][A-Za-z0-9._@:-]{0,199})$/;
/** Episodes of rollouts; older skills name them without "episodes/". Those that an outside agent told have other ids. */
const OF_A_ROLLOUT = /^(t[0-9a-z]{8,40}-r[0-9]{1,6})(?:\..*)?$/;

/** null for anything that names no record, such as a text with line breaks. */
export function sourceOf(name: string): Source | null {
  const [, kind = '', id = ''] = SOURCE.exec(name) ?? [];
  if ((SOURCE_KINDS as readonly string[]).includes(kind)) return { kind: kind as SourceKind, id };
  return OF_A_ROLLOUT.test(name) ? { kind: 'episodes', id: name } : null;
}

/** The rollout whose episode this is; null for an episode that was told. */
export function rolloutOf(episode: string): string | null {
  return OF_A_ROLLOUT.exec(episode)?.[1] ?? null;
}

/** By what an episode is named among sources: its rollout, where it is one's, else its id. */
export function episodeKey(episode: string): string {
  return rolloutOf(episode) ?? episode;
}

/**
 * Why what was learned from these sources is never approved automatically, one reason each; empty where nothing speaks against it.
 *
 * Texts that nobody of this installation wrote are not trusted: documents, what outside agents told, imports, and whatever can't be
 * told. To name a source can take trust away, and never gives any: what was recalled is added by who recalled it.
 */
export function reasonsNotTrusted(sources: readonly string[]): string[] {
  return [...new Set(sources.flatMap(reasonAgainst))];
}

const REASONS: Readonly<Partial<Record<SourceKind, (id: string) => string>>> = {
  documents: (id) => `it was learned where text of documents/${id} was read`,
  facts: (id) => `it was learned where facts/${id} was read, which was told`,
  procedures: (id) => `it rests on the words of procedures/${id}, which were told`,
  imports: (id) => `it came in with imports/${id}`,
  untrustedTasks: (id) => `it was learned from tasks/${id}, which came from where nobody is trusted`,
  markedSkills: (id) => `it was learned in sight of skills/${id}, which is marked`,
};

function reasonAgainst(name: string): string[] {
  const source = sourceOf(name);
  if (source === null) return ['it names a source that is none, so that nobody can tell where it comes from'];
  const { kind, id } = source;
  if (kind === 'episodes' && rolloutOf(id) === null) return [`it was learned where episodes/${id} was read, which an outside agent told`];
  const reason = REASONS[kind]?.(id);
  return reason === undefined ? [] : [reason];
}

const NAMED = /\b(?:tasks|episodes|documents|facts|procedures|skills|imports)\/[A-Za-z0-9][A-Za-z0-9._@:-]*/g;

/** The sources that these marks are for: marks go on where sources do not, such as to the next version. */
export function sourcesOfMarks(marks: readonly string[]): string[] {
  return marks.flatMap((mark) => {
    const named = mark.match(NAMED) ?? [];
    const meant = named.flatMap((name) => [name, name.replace(/^tasks/, 'untrustedTasks').replace(/^skills/, 'markedSkills')]);
    return meant.filter((name) => reasonsNotTrusted([name]).includes(mark));
  });
}

/** The skill with every mark that its sources give it, beside those that it has. */
export function withMarks<S extends Pick<Skill, 'sources' | 'untrusted'>>(skill: S): S {
  const untrusted = [...new Set([...(skill.untrusted ?? []), ...reasonsNotTrusted(skill.sources)])];
  return untrusted.length === 0 ? skill : { ...skill, untrusted };
}

/** Whether it may be approved without anybody looking, as far as its sources go. Looks at the sources again: a mark can be left out. */
export function isTrusted(skill: Pick<Skill, 'sources' | 'untrusted'>): boolean {
  return (withMarks(skill).untrusted ?? []).length === 0;
}

/** One of them is enough for a mark; the others serve to revoke one, which is found through episodes as well. */
const CARRIED_MAX = 32;

/**
 * A memory that somebody is shown. `sources`: of a fact what it rests on; of all else what is not trusted of what it was made in sight of,
 * among others, since ids don't tell.
 */
export type Shown = Pick<RecalledItem, 'id' | 'kind'> & { readonly sources?: readonly string[] | undefined };

/**
 * What somebody was shown, as names for what is learned there, each once: documents, episodes, skills, and of facts the episodes that they
 * rest on, and themselves where they were told. With each all that is not trusted of what that one was made in sight of, so that a mark
 * goes from hand to hand, whatever became of the text that it is for.
 */
export function touchedSources(shown: readonly Shown[]): string[] {
  return [...new Set(shown.flatMap((one) => [...touched(one), ...untrustedAmong(one.sources ?? [])]))];
}

/** What of these names is kept with a memory that was made in sight of them, beside its own name. */
export function untrustedAmong(names: readonly string[]): string[] {
  const untrusted = names.filter((name) => sourceOf(name) !== null && reasonsNotTrusted([name]).length > 0);
  return [...new Set(untrusted)].slice(0, CARRIED_MAX);
}

function touched({ id, kind, sources = [] }: Shown): string[] {
  switch (kind) {
    case 'fact':
      return sources.map(restsOn);
    case 'document':
      return [`documents/${id}`];
    case 'chunk':
      return [`documents/${id.replace(/\.[^.]*$/, '')}`];
    case 'skill':
      return [`skills/${id}`];
    case 'transition':
    case 'episode':
    case 'summary':
    case 'reflection':
      return [`episodes/${episodeKey(id)}`];
    default:
      return [];
  }
}

/** Episodes stand in a fact by their ids alone. */
function restsOn(name: string): string {
  const source = sourceOf(name);
  if (source !== null && source.kind !== 'episodes') return name;
  return `episodes/${episodeKey(source?.id ?? name)}`;
}
