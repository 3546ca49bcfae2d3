import { readFileSync } from 'node:fs';

/** Beside `src` and beside `dist`. */
const FOLDER = new URL('../python/', import.meta.url);

/**
 * The text of a file of `libs/domain/python`, for a sandbox to run. Read when the code is loaded, as any module is, and never later.
 *
 * @param name without ".py"
 */
export const pythonText = (name: string): string => readFileSync(new URL(`${name}.py`, FOLDER), 'utf8');

/** One program of several files: `main`, which finds the others by `import`. @param modules each behind those that it imports */
export function pythonProgram(main: string, modules: readonly string[]): string {
  const defined = modules.map((name) => {
    const scope = `sys.modules.setdefault("${name}", types.ModuleType("${name}")).__dict__`;
    return `exec(compile(${JSON.stringify(pythonText(name))}, "${name}.py", "exec"), ${scope})\n`;
  });
  return `import sys, types\n${defined.join('')}${pythonText(main)}`;
}

/**
 * A Python expression on one line that calls a function of one of these files, and binds no name.
 *
 * @param args Python expressions; JSON of texts, lists and objects is Python, too
 */
export function pythonCall(text: string, called: string, args: readonly string[]): string {
  const run = `exec(compile(${JSON.stringify(text)}, "<${called}>", "exec", dont_inherit=True), scope)`;
  return `(lambda scope: (${run}, scope["${called}"])[1])({})(${args.join(', ')})`;
}
