import { EtudeError } from '@etude/contracts/errors';
import type { Clock } from '../../ports/clock.js';
import type { ProceduralMemory } from '../../ports/memory.js';
import type { ProofChecker } from '../../ports/proof-signer.js';
import { dependencyOn, loadingCode } from './bundle-code.js';
import { neededSkills } from '../life/call-graph.js';
import { findSkill, type SkillReader } from '../life/find-skill.js';
import { isProven } from './proof.js';

export interface LoadedFunction {
  readonly name: string;
  readonly version: number;
  readonly digest: string;
  /** "def parse_csv(text: str) -> list[list[str]]" */
  readonly signature: string;
  /** The author's words, which are only data in a prompt. */
  readonly description: string;
}

interface LoadDeps {
  readonly procedural: Pick<ProceduralMemory, 'versions' | 'countOffers'>;
  readonly checker: ProofChecker;
  readonly clock: Clock;
}

/**
 * Loads functions for code that is yet to be written, with the skills that they need, in the versions that were verified together. Each
 * function counts as offered and loaded. If one is refused, none is counted. `pins` load the same versions again. `code` makes each
 * function callable by its name, and importable from `skills`.
 *
 * @throws EtudeError NOT_FOUND naming all that are missing; FAILED_PRECONDITION where one has nothing to call or is not proven
 */
export async function loadFunctions(reader: SkillReader, names: readonly string[], deps: LoadDeps) {
  const wanted = [...new Set(names)];
  const found = await Promise.all(wanted.map((name) => findSkill(deps.procedural, reader, name)));
  const missing = wanted.filter((_, at) => found[at] === null);
  if (missing.length > 0)
    throw new EtudeError('NOT_FOUND', `There is no active skill named ${missing.join(', ')}; search for the existing skills.`, {
      field: 'names',
    });
  const skills = found.filter((skill) => skill !== null);
  const pins = skills.map((skill) => dependencyOn(skill));
  const imports = skills.length === 0 ? '' : `from skills import ${skills.map(({ name }) => name).join(', ')}\n`;
  const { tenant, agent, user } = reader;
  const caller = { name: 'the code', scope: { tenant, agent, user }, dependencies: pins };
  const needed = await neededSkills(deps.procedural, caller, (skill) => isProven(skill, deps.checker));
  const loadedAt = deps.clock.now();
  await deps.procedural.countOffers(skills.map(({ scope, name, version }) => ({ ...scope, name, version, loadedAt })));
  const functions: LoadedFunction[] = skills.map(({ name, version, digest, contract, description }) => ({
    name,
    version,
    digest,
    signature: contract?.signature ?? '',
    description,
  }));
  return { functions, pins, code: needed.length === 0 ? '' : `${loadingCode(needed, pins)}\n${imports}` };
}
