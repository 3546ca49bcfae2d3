import { errorCode } from '@etude/contracts/errors';
import type { RecalledItem, Scope, Skill } from '@etude/contracts/memory';
import { nothingToCall } from '../skills/life/call-graph.js';
import { findSkill } from '../skills/life/find-skill.js';
import { untrustedOfSkill } from '../skills/life/carried-over.js';
import { bundledCode, dependencyOn, importedNames } from '../skills/proof/bundle-code.js';
import { isProven } from '../skills/proof/proof.js';
import { loadedWith } from '../skills/proof/use-skill.js';
import { type Attempt, NOTHING_SAID } from './attempt-record.js';
import { askModel, type RolloutContext } from './rollout-context.js';
import { extractAnswer } from '../evaluation/answer-code.js';
import type { Judgement } from '../evaluation/judge.js';
import { rulesOf } from '../evaluation/evaluators.js';
import { wrapRequest } from './prompts.js';
import type { ReusableSkill } from './reuse-skill.js';
import { tryAnswer } from './try-answer.js';
import { useOf } from '../skills/life/usage.js';

interface ImportedSkills {
  readonly used: ReadonlyArray<Pick<Skill, 'name' | 'version' | 'scope'>>;
  readonly untrusted: readonly string[];
  /** Returns the code with these skills in front of it. */
  readonly load: (code: string) => string;
  /** The sandbox template with the skills' packages. Absent means the default template. */
  readonly template?: string;
}

const NONE: ImportedSkills = { used: [], untrusted: [], load: (code) => code };

/** Finds the skills that the code imports. It can import only skills and versions that the prompt showed, because only these are journaled. */
export async function importedSkills(
  { deps, scope }: RolloutContext,
  recalled: readonly RecalledItem[],
  code: string,
): Promise<ImportedSkills> {
  const imported = importedNames(code);
  const isImported = (id: string) => imported.has(id.split('@', 1)[0] ?? '') || imported.has('*');
  const shown = recalled.filter(({ kind, id }) => kind === 'skill' && isImported(id));
  const found = await Promise.all(shown.map(({ id }) => skillWithId(id, scope, deps.procedural)));
  const used = found.filter((skill) => skill !== null).filter((skill) => nothingToCall(skill) === null && isProven(skill, deps.checker));
  const loaded = used.length === 0 ? null : await loadedOrNull(answerImporting(used, scope), deps);
  if (loaded === null) return NONE;
  const { needed, ...place } = loaded;
  const pins = used.map((skill) => dependencyOn(skill));
  return { used, untrusted: used.flatMap(untrustedOfSkill), load: (text) => bundledCode(text, needed, pins), ...place };
}

/** The answer in the form of a skill that calls these skills, because `loadedWith` takes a skill. */
export const answerImporting = (skills: readonly Skill[], scope: Scope) => {
  return { name: 'the answer', scope, dependencies: skills.map((skill) => dependencyOn(skill)), packages: [] };
};

/** Calls `loadedWith`, but returns null if a skill is missing or not proven, or if no sandbox has the skills' packages. */
export async function loadedOrNull(...asked: Parameters<typeof loadedWith>): Promise<Awaited<ReturnType<typeof loadedWith>> | null> {
  try {
    return await loadedWith(...asked);
  } catch (error) {
    if (errorCode(error) === 'FAILED_PRECONDITION') return null;
    throw error;
  }
}

export function skillWithId(id: string, reader: Scope, procedural: RolloutContext['deps']['procedural']): Promise<Skill | null> {
  const [name = '', version] = id.split('@');
  return findSkill(procedural, reader, name, { version: Number(version) });
}

/** Executes and judges an answer that imports skills. Counts one use of each skill, as a success if the answer was accepted. */
export function tryImporting(
  context: RolloutContext,
  said: Parameters<typeof tryAnswer>[1],
  code: string | null,
  { used, untrusted, load, template }: ImportedSkills,
  judgement?: Judgement,
): Promise<Attempt> {
  const { deps, tenant, rolloutId, scope } = context;
  const imported = { imported: used.map(({ name, version }) => `${name}@${version}`), ofSkill: untrusted };
  return tryAnswer(context, { ...(used.length > 0 && imported), ...said }, code, {
    load,
    template,
    ...(judgement && { judgement }),
    async alsoRecord({ attempt, judgement: { verdict }, at }) {
      for (const skill of used)
        await deps.outbox.put(tenant, `${rolloutId}.a${attempt}.use.${skill.name}`, useOf(skill, scope, { success: verdict === 'AC', at }));
    },
  });
}

/** A longer answer is a whole program, not a wrapper. The usual attempt writes better programs. */
const WRAPPER_LINES_MAX = 60;

export function canBeWrapped({ kind, contract, entryPoint }: Skill, { spec }: RolloutContext): boolean {
  return kind === 'function' && entryPoint !== null && contract !== undefined && rulesOf(spec.evaluator).entryPoint !== undefined;
}

/**
 * Attempt 0 with a skill that doesn't fit directly: asks the model once for a wrapper that imports the skill. The model doesn't see the skill's code.
 * Returns null if the answer doesn't import the skill or is too long. Then no use of the skill is counted.
 */
export async function wrapSkill(context: RolloutContext, skill: ReusableSkill): Promise<Attempt | null> {
  const { text, ...asked } = await askModel(context, 'a0.wrap', 'wrap', () => wrapRequest(context.promptTask, skill));
  const answer = extractAnswer(text, rulesOf(context.spec.evaluator).entryPoint);
  if (answer === null || !importedNames(answer.code).has(skill.name) || answer.code.split('\n').length > WRAPPER_LINES_MAX) return null;
  const { needed, ofSkill: untrusted, template } = skill;
  const load = (code: string) => bundledCode(code, needed, [dependencyOn(skill)]);
  const said = { ...NOTHING_SAID, attempt: 0, thought: answer.thought, ...asked, scripted: skill.scripted || asked.scripted };
  return tryImporting(context, said, answer.code, { used: [skill], untrusted, load, ...(template !== undefined && { template }) });
}
