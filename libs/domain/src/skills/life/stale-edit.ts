import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { canonicalJson } from '../content-digest.js';

/** What an author writes, with what it is called in messages. */
const WRITTEN = {
  description: 'description',
  code: 'code',
  entryPoint: 'entry point',
  kind: 'kind',
  parameters: 'parameters',
  tests: 'tests',
  heldOut: 'held-out tests',
  tags: 'tags',
  category: 'category',
  displayName: 'display name',
  examplePrompts: 'example prompts',
  dependencies: 'dependencies',
  packages: 'packages',
  files: 'files',
  metadata: 'metadata',
} as const satisfies Partial<Record<keyof Skill, string>>;

/**
 * That somebody edited another version than the newest, with what changed since, by whom and when; null where nobody did.
 *
 * @param versions all of the owner's and the same user's, newest first: nobody is told of another user's
 */
export function staleEdit(name: string, baseVersion: number, versions: readonly Skill[]): EtudeError | null {
  const newest = versions[0];
  if ((newest?.version ?? 0) === baseVersion) return null;
  const base = versions.find(({ version }) => version === baseVersion);
  if (newest === undefined || base === undefined)
    return new EtudeError('ABORTED', `skill "${name}" has no version ${baseVersion} to edit; the newest is ${newest?.version ?? 'none'}`, {
      field: 'base_version',
    });
  const since = versions.filter(({ version }) => version > baseVersion).toReversed();
  return new EtudeError(
    'ABORTED',
    `skill "${name}" changed since version ${baseVersion}: ${since.map((version) => changeOf(base, version)).join('; ')}. Read version ${newest.version} and make the edit on it.`,
    { field: 'base_version', metadata: { newest_version: String(newest.version), changed: changedFields(base, newest).join(', ') } },
  );
}

type Written = keyof typeof WRITTEN;

/** What differs, by what an author calls it; of these fields alone where some are given. */
export function changedFields(a: Skill, b: Skill, fields = Object.keys(WRITTEN) as readonly Written[]): readonly string[] {
  return fields.flatMap((field) => {
    const [before, after] = [a, b].map((skill) => canonicalJson(skill[field] ?? []));
    return before === after ? [] : [WRITTEN[field]];
  });
}

function changeOf(base: Skill, version: Skill): string {
  const stored = version.history?.[0];
  const fields = changedFields(base, version);
  const what = fields.length === 0 ? 'nothing that an author writes' : fields.join(', ');
  const who = stored === undefined ? '' : ` by ${stored.by}`;
  return `version ${version.version}${who} at ${new Date(stored?.at ?? version.createdAt).toISOString()} changed ${what}`;
}
