import type { Skill } from '@etude/contracts/memory';
import type { Evaluator } from '@etude/contracts/task';
import type { SkillAnswer } from '../evaluation/evaluator.js';
import { rulesOf } from '../evaluation/evaluators.js';

/** How a skill answers a task; null where it can't. */
export function adaptSkill(skill: Pick<Skill, 'kind' | 'entryPoint' | 'code'>, evaluator: Evaluator): SkillAnswer | null {
  return skill.kind === 'function' ? rulesOf(evaluator).adapt(evaluator, skill) : null;
}

/** What the model is asked for, as `bindRequest` says it. */
export function bindingQuestion(skill: Pick<Skill, 'entryPoint'>, binds: 'arguments' | 'stdin'): string {
  return binds === 'stdin'
    ? 'its key "stdin" holds the text that the program has to read from standard input'
    : `its keys are the names of the parameters of \`${skill.entryPoint}\`, its values what the task says they are`;
}

/** The skill with its parameters, as a program that prints the result. Null where the model's answer binds nothing. */
export function boundCode(skill: Pick<Skill, 'entryPoint' | 'code'>, binds: 'arguments' | 'stdin', answer: string): string | null {
  const bound = jsonObjectIn(answer);
  if (bound === null || Object.keys(bound).length === 0) return null;
  if (binds === 'arguments')
    return `${skill.code}\n\n\nimport json as _json\n\nprint(${skill.entryPoint}(**_json.loads(${pythonText(JSON.stringify(bound))})))`;
  if (typeof bound['stdin'] !== 'string') return null;
  return `import io as _io\nimport sys as _sys\n\n_sys.stdin = _io.StringIO(${pythonText(bound['stdin'])})\n\n${skill.code}`;
}

/** A JSON string is a Python string literal. */
function pythonText(text: string): string {
  return JSON.stringify(text);
}

/** The first JSON object in a model's answer, fenced or not; null where there is none that parses. */
export function jsonObjectIn(text: string): Record<string, unknown> | null {
  const from = text.indexOf('{');
  const to = text.lastIndexOf('}');
  if (from < 0 || to < from) return null;
  try {
    const parsed: unknown = JSON.parse(text.slice(from, to + 1));
    return parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed) ? (parsed as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
