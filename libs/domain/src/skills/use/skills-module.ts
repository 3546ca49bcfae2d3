import type { Skill } from '@etude/contracts/memory';
import { pythonCall, pythonText } from '../../python-files.js';

/** A skill to load, with the names by which its own code finds others. */
export interface LoadedSkill {
  /** Module and file in tracebacks, one of its own: "skills/parse_csv@2". */
  readonly module: string;
  readonly code: string;
  /** What callers get by the skill's name. */
  readonly entryPoint: string;
  /** Module by name, for `from skills import NAME`. */
  readonly sees: Readonly<Record<string, string>>;
}

const LOADER = pythonText('load_skills');

/** Python that defines `skills` for the code behind it in the same interpreter, and binds no other name. */
export function skillsModule(needed: readonly LoadedSkill[], sees: Readonly<Record<string, string>>): string {
  return `${loading(needed, sees)}\n`;
}

/**
 * The same, and then the code, in the module that this text is run in. Its lines keep their numbers, in tracebacks too, and imports
 * from `__future__` stay its first statement.
 */
export function behindSkills(code: string, needed: readonly LoadedSkill[], sees: Readonly<Record<string, string>>): string {
  const text = JSON.stringify(code);
  const file = '__import__("sys")._getframe().f_code.co_filename';
  // Below the code's last line, so that a traceback shows none of its lines for the last statement here.
  const below = '\n'.repeat(code.split('\n').length);
  return `${loading(needed, sees, file, text)}${below}exec(compile(${text}, ${file}, "exec", dont_inherit=True), globals())\n`;
}

const loading = (needed: readonly LoadedSkill[], sees: Readonly<Record<string, string>>, ...shown: readonly string[]) =>
  pythonCall(LOADER, 'load', [JSON.stringify(needed), JSON.stringify(sees), ...shown]);

/** What the module is called that a skill is loaded into; `taken` are names that others have. */
export function moduleName({ name, version }: Pick<Skill, 'name' | 'version'>, taken: ReadonlySet<string>): string {
  const wanted = `skills/${name}@${version}`;
  for (let n = 2, free = wanted; ; n += 1, free = `${wanted}-${n}`) if (!taken.has(free)) return free;
}
