import type { RecalledItem, Skill } from '@etude/contracts/memory';
import { wasOnlyTold } from '../life/told-procedure.js';
import { PROMOTED_MARK } from './carried-marks.js';
import { episodeKey, reasonsNotTrusted, sourceOf, withMarks } from './untrusted.js';

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

/**
 * What is not trusted of a skill, for whoever is shown it or uses it: a reviewer vouches for a version, not for what is written in its sight.
 * Words that were told are not either, also where they came in without a mark.
 */
export function untrustedOfSkill(skill: Skill): string[] {
  const named = untrustedAmong(skill.sources);
  if (named.length > 0) return named;
  const isMarked = (withMarks(skill).untrusted ?? []).some((mark) => mark !== PROMOTED_MARK);
  return isMarked || wasOnlyTold(skill) ? [`markedSkills/${skill.name}@${skill.version}`] : [];
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
