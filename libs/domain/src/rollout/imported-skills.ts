import { errorCode } from '@etude/contracts/errors';
import type { RecalledItem, Skill } from '@etude/contracts/memory';
import { nothingToCall } from '../skills/life/call-graph.js';
import { findSkill } from '../skills/life/find-skill.js';
import { untrustedOfSkill } from '../skills/life/marks.js';
import { bundledCode, dependencyOn, importedNames } from '../skills/proof/bundle-code.js';
import { isProven } from '../skills/proof/proof.js';
import { loadedWith } from '../skills/proof/use-skill.js';
import { type Attempt, NOTHING_SAID } from './attempt-record.js';
import { askModel, type RolloutContext } from './rollout-context.js';
import { extractAnswer } from '../evaluation/answer-code.js';
import { rulesOf } from '../evaluation/evaluators.js';
import { wrapRequest } from './prompts.js';
import type { ReusableSkill } from './reuse-skill.js';
import { tryAnswer } from './try-answer.js';
import { useOf } from '../skills/life/usage.js';

export interface ImportedSkills {
  readonly used: readonly Skill[];
  /** Adds the skills to code that runs in a sandbox. */
  readonly load: (code: string) => string;
  /** The sandbox template with the skills' packages; absent: the default one. */
  readonly template?: string;
}

const NONE: ImportedSkills = { used: [], load: (code) => code };

/**
 * Finds the skills that the code imports, among those that its prompt showed and in exactly these versions. Other skills can't be imported.
 * The shown ones are journaled, so that a later worker loads the same.
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
  const success = attempt.judgement.verdict === 'AC';
  for (const skill of used)
    await deps.outbox.put(tenant, `${rolloutId}.a${attempt.attempt}.use.${skill.name}`, useOf(skill, scope, { success, at: attempt.at }));
}

export function importedBy({ used }: ImportedSkills): Pick<Attempt, 'imported' | 'ofSkill'> {
  if (used.length === 0) return {};
  return { imported: used.map(({ name, version }) => `${name}@${version}`), ofSkill: used.flatMap((skill) => untrustedOfSkill(skill)) };
}

/** Longer answers aren't wrappers but whole programs, which an attempt writes better. */
const WRAPPER_LINES_MAX = 60;

/** Whether a wrapper can make this function answer the task: both have a name to call, and the function says what it takes. */
export function canBeWrapped({ kind, contract, entryPoint }: Skill, { spec }: RolloutContext): boolean {
  return kind === 'function' && entryPoint !== null && contract !== undefined && rulesOf(spec.evaluator).entryPoint !== undefined;
}

/** The skills to load, so that a wrapper can import this one. @throws as `loadedWith` */
export function loadedForWrapper(skill: Skill, deps: RolloutContext['deps']) {
  return loadedWith({ name: 'the answer', scope: skill.scope, dependencies: [dependencyOn(skill)], packages: [] }, deps);
}

/**
 * Attempt 0 with a function that doesn't fit directly: asks the model once for a wrapper that imports it, without showing its code. Returns
 * null if the answer doesn't import it or is long. The skill isn't blamed for that.
 */
export async function wrapSkill(context: RolloutContext, skill: ReusableSkill): Promise<Attempt | null> {
  const { text, ...asked } = await askModel(context, 'a0.wrap', 'wrap', () => wrapRequest(context.promptTask, skill));
  const answer = extractAnswer(text, rulesOf(context.spec.evaluator).entryPoint);
  if (answer === null || !importedNames(answer.code).has(skill.name) || answer.code.split('\n').length > WRAPPER_LINES_MAX) return null;
  const said = {
    ...NOTHING_SAID,
    attempt: 0,
    thought: answer.thought,
    imported: [`${skill.name}@${skill.version}`],
    ofSkill: skill.ofSkill,
    ...asked,
    scripted: skill.scripted || asked.scripted,
  };
  return tryAnswer(context, said, answer.code, {
    load: (code) => bundledCode(code, skill.needed, [dependencyOn(skill)]),
    template: skill.template,
    alsoRecord: (attempt) => noteImports(context, [skill], attempt),
  });
}
