import type { Skill } from '@etude/contracts/memory';

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

/**
 * Gives each skill a module of its own, whose imports of `skills` answer what that skill was verified with: two skills may have been
 * verified with different versions of a third. Only then is `skills` made for the code that follows.
 * Why copies of the builtins: `import` takes `__import__` from those of the code's own module, also inside functions.
 */
const LOADER = String.raw`
import builtins, linecache, sys, types

entries = {}

def skills_of(sees):
    module = types.ModuleType("skills", "Skills, each with those that it was verified with.")
    module.__dict__.update({name: entries[key] for name, key in sees.items()})
    module.__all__ = sorted(sees)
    return module

def builtins_with(skills):
    def import_module(name, globals=None, locals=None, fromlist=(), level=0):
        if name == "skills" and level == 0:
            return skills
        return builtins.__import__(name, globals, locals, fromlist, level)
    return dict(vars(builtins), __import__=import_module)

def show_lines(file, code):
    linecache.cache[file] = (len(code), None, [line + "\n" for line in code.split("\n")], file)

for skill in needed:
    module = types.ModuleType(skill["module"])
    module.__builtins__ = builtins_with(skills_of(skill["sees"]))
    module.__file__ = skill["module"] + ".py"
    sys.modules[module.__name__] = module
    show_lines(module.__file__, skill["code"])
    exec(compile(skill["code"], module.__file__, "exec", dont_inherit=True), module.__dict__)
    if skill["entryPoint"] not in module.__dict__:
        raise ImportError("the skill %s defines no %s" % (skill["module"], skill["entryPoint"]))
    entries[skill["module"]] = module.__dict__[skill["entryPoint"]]

sys.modules["skills"] = skills_of(sees)
if code is not None:
    show_lines(file, code)
`.trim();

const LOADER_LINES = LOADER.split('\n').length;

/** Python that defines `skills` for what runs behind it in the same interpreter, and leaves no other name. */
export function skillsModule(needed: readonly LoadedSkill[], sees: Readonly<Record<string, string>>): string {
  return `${loading(needed, sees)}, "code": None})\n`;
}

/**
 * The same, and then the code, in the module that this text is run in: its lines keep their numbers, in tracebacks too, and imports
 * from `__future__` are its first statement as before.
 */
export function behindSkills(code: string, needed: readonly LoadedSkill[], sees: Readonly<Record<string, string>>): string {
  const text = JSON.stringify(code);
  const file = '__import__("sys")._getframe().f_code.co_filename';
  // Below the code's last line, so that a traceback shows none of its lines for the last statement here.
  const below = '\n'.repeat(Math.max(1, code.split('\n').length - LOADER_LINES));
  return (
    `${loading(needed, sees)}, "code": ${text}, "file": ${file}})${below}` +
    `exec(compile(${text}, ${file}, "exec", dont_inherit=True), globals())\n`
  );
}

/** JSON of texts, lists and objects is Python, too. */
function loading(needed: readonly LoadedSkill[], sees: Readonly<Record<string, string>>): string {
  const given = `"needed": ${JSON.stringify(needed)}, "sees": ${JSON.stringify(sees)}`;
  return `exec(compile(r'''${LOADER}''', "<skills>", "exec", dont_inherit=True), {${given}`;
}

/** What the module is called that a skill is loaded into; `taken` are names that others have. */
export function moduleName({ name, version }: Pick<Skill, 'name' | 'version'>, taken: ReadonlySet<string>): string {
  const wanted = `skills/${name}@${version}`;
  for (let n = 2, free = wanted; ; n += 1, free = `${wanted}-${n}`) if (!taken.has(free)) return free;
}
