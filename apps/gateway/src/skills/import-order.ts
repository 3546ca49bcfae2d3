import { EtudeError } from '@etude/contracts/errors';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { findSkill } from '@etude/domain/skills/life/find-skill';
import type { Registration } from './skill-registration.js';

/** One skill of an import, with the names of the skills that it calls. */
export interface ReadImport {
  readonly registration: Registration;
  readonly uses: readonly string[];
}

export interface ImportOrder {
  /** What can be registered now; what is called before what calls it. */
  readonly ready: readonly Registration[];
  /** What waits for others of them, with for whom and what to do. */
  readonly waiting: ReadonlyArray<{ readonly registration: Registration; readonly note: string }>;
}

const nameOf = ({ registration }: ReadImport) => registration.draft.skill.name;

/**
 * A skill is pinned to active ones, and nothing that is imported is active before somebody approved it. What calls another of the same
 * import therefore waits for it, and is taken when the same is imported again.
 *
 * @throws EtudeError FAILED_PRECONDITION where they call each other in a circle; MEMORY_UNAVAILABLE
 */
export async function orderImport(procedural: Pick<ProceduralMemory, 'versions'>, imports: readonly ReadImport[]): Promise<ImportOrder> {
  const ready: Registration[] = [];
  const waiting: Array<ImportOrder['waiting'][number]> = [];
  for (const one of calledFirst(imports)) {
    const { registration } = one;
    const missing = await missingOf(one, imports, procedural);
    if (missing.length === 0) ready.push(registration);
    else waiting.push({ registration, note: waitingNote(nameOf(one), missing.join(', ')) });
  }
  return { ready, waiting };
}

const waitingNote = (name: string, missing: string) =>
  `${name} waits: it calls ${missing}, not active yet; approve ${missing}, then import the same again`;

/** Of the same import and not in use here. */
async function missingOf(
  { registration, uses }: ReadImport,
  imports: readonly ReadImport[],
  procedural: Pick<ProceduralMemory, 'versions'>,
) {
  const names = new Set(imports.map(nameOf));
  const { scope } = registration.draft.skill;
  const missing: string[] = [];
  for (const name of uses) if (names.has(name) && (await findSkill(procedural, scope, name)) === null) missing.push(name);
  return missing;
}

function calledFirst(imports: readonly ReadImport[]): readonly ReadImport[] {
  const byName = new Map(imports.map((one) => [nameOf(one), one]));
  const ordered = new Set<ReadImport>();
  const visit = (one: ReadImport, path: readonly string[]) => {
    const name = nameOf(one);
    if (path.includes(name))
      throw new EtudeError('FAILED_PRECONDITION', `skills call each other in a circle: ${[...path, name].join(' -> ')}; take one call out`);
    if (ordered.has(one)) return;
    for (const used of one.uses) {
      const called = byName.get(used);
      if (called !== undefined) visit(called, [...path, name]);
    }
    ordered.add(one);
  };
  for (const one of imports) visit(one, []);
  return [...ordered];
}
