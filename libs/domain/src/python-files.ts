import { readFileSync } from 'node:fs';

/** The path is the same from `src` and from `dist`. */
const FOLDER = new URL('../python/', import.meta.url);

/**
 * Reads a file of `libs/domain/python` that a sandbox will run. Called while modules load, never later.
 *
 * @param name without ".py"
 */
export const pythonText = (name: string): string => readFileSync(new URL(`${name}.py`, FOLDER), 'utf8');

/** Joins several files into one program: `main`, which can import the `modules`. @param modules each after those that it imports */
export function pythonProgram(main: string, modules: readonly string[]): string {
  const defined = modules.map((name) => {
    const scope = `sys.modules.setdefault("${name}", types.ModuleType("${name}")).__dict__`;
    return `exec(compile(${JSON.stringify(pythonText(name))}, "${name}.py", "exec"), ${scope})\n`;
  });
  return `import sys, types\n${defined.join('')}${pythonText(main)}`;
}

/**
 * A Python expression on one line that calls the function `called` of the file's `text`, and binds no name.
 *
 * @param args Python expressions; JSON of strings, lists and objects is valid Python, too
 */
export function pythonCall(text: string, called: string, args: readonly string[]): string {
  const run = `exec(compile(${JSON.stringify(text)}, "<${called}>", "exec", dont_inherit=True), scope)`;
  return `(lambda scope: (${run}, scope["${called}"])[1])({})(${args.join(', ')})`;
}
