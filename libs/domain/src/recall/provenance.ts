import { episodeKey, reasonsNotTrusted, type Shown, sourceOf, touchedSources } from '../trust/sources.js';

/** Where what a memory says comes from, for who is shown it. */
export interface Provenance {
  /** By kind and id, such as "episodes/t0192f0c8a1b2-r1", "documents/d1f" or, where somebody told a fact, "facts/0a1b". */
  readonly origins: string[];
  /** Those of them whose words nobody of this installation wrote. */
  readonly untrustedOrigins: string[];
}

/** Of a skill where it was learned; of all else what it is, or what it rests on, and what is not trusted of what it was made in sight of. */
export function provenanceOf({ id, kind, sources = [] }: Shown): Provenance {
  const origins = kind === 'skill' ? [...new Set(sources.map(originOf))] : touchedSources([{ id, kind, sources }]);
  return { origins, untrustedOrigins: origins.filter((origin) => reasonsNotTrusted([origin]).length > 0) };
}

/** A rollout's episode goes by its rollout, as everywhere. */
function originOf(name: string): string {
  const source = sourceOf(name);
  return source?.kind === 'episodes' ? `episodes/${episodeKey(source.id)}` : name;
}
