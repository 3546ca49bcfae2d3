import { errorCode } from '@etude/contracts/errors';
import type { MemoryWrite, RecalledItem, Skill } from '@etude/contracts/memory';
import { nothingToCall } from '../skills/life/call-graph.js';
import { findSkill } from '../skills/life/find-skill.js';
import { untrustedOfSkill } from '../skills/life/marks.js';
import { bundledCode, dependencyOn, importedNames } from '../skills/proof/bundle-code.js';
import { isProven } from '../skills/proof/proof.js';
import { loadedWith } from '../skills/proof/use-skill.js';
import type { Attempt } from './attempt-record.js';
import type { RolloutContext } from './rollout-context.js';

/** Skills that an answer's code imports. */
export interface ImportedSkills {
  readonly used: readonly Skill[];
  /** Adds the skills to code that runs in a sandbox. */
  readonly load: (code: string) => string;
  /** The sandbox template with the skills' packages; absent: the default one. */
  readonly template?: string;
}

const NONE: ImportedSkills = { used: [], load: (code) => code };

/**
 * Finds the skills that the code imports, among those that its prompt showed and in exactly these versions. Others can't be imported: what
 * was shown is journaled, so that a later worker loads the same.
 */
export async function importedSkills(
  { deps, scope }: RolloutContext,
  recalled: readonly RecalledItem[],
  code: string,
): Promise<ImportedSkills> {
  const imported = importedNames(code);
  const isImported = (id: string) => imported.has(id.split('@', 1)[0] ?? '') || imported.has('*');
  const shown = recalled.filter(({ kind, id }) => kind === 'skill' && isImported(id));
  const found = await Promise.all(shown.map(({ id }) => skillWithId(id, scope, deps.procedural)));
  const used = found.filter(
    (skill) => skill !== null && nothingToCall(skill) === null && isProven(skill, deps.checker),
  ) as readonly Skill[];
  if (used.length === 0) return NONE;
  const pins = used.map((skill) => dependencyOn(skill));
  try {
    const { needed, ...place } = await loadedWith({ name: 'the answer', scope, dependencies: pins, packages: [] }, deps);
    return { used, load: (text) => bundledCode(text, needed, pins), ...place };
  } catch (error) {
    if (errorCode(error) === 'FAILED_PRECONDITION') return NONE;
    throw error;
  }
}

export function skillWithId(
  id: string,
  reader: RolloutContext['scope'],
  procedural: RolloutContext['deps']['procedural'],
): Promise<Skill | null> {
  const [name = '', version] = id.split('@');
  return findSkill(procedural, reader, name, { version: Number(version) });
}

/** Counts one use of each imported skill. An accepted attempt counts as its success. */
export async function noteImports(
  { deps, tenant, rolloutId, scope }: RolloutContext,
  used: ReadonlyArray<Pick<Skill, 'name' | 'version' | 'scope'>>,
  attempt: Attempt,
): Promise<void> {
  for (const { name, version, scope: owner } of used) {
    const { tenant: ownersTenant, agent, user } = owner;
    const use: Extract<MemoryWrite, { kind: 'skill_use' }> = {
      kind: 'skill_use',
      scope,
      owner: { tenant: ownersTenant, agent, ...(user === null ? {} : { user }) },
      name,
      version,
      success: attempt.judgement.verdict === 'AC',
      fingerprint: '',
      cue: '',
      at: attempt.at,
    };
    await deps.outbox.put(tenant, `${rolloutId}.a${attempt.attempt}.use.${name}`, use);
  }
}

export function importedBy({ used }: ImportedSkills): Pick<Attempt, 'imported' | 'ofSkill'> {
  if (used.length === 0) return {};
  return { imported: used.map(({ name, version }) => `${name}@${version}`), ofSkill: used.flatMap((skill) => untrustedOfSkill(skill)) };
}
