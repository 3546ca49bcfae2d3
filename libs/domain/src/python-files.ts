import { readFileSync } from 'node:fs';

/** This path is right both from `src` and from `dist`. */
const FOLDER = new URL('../python/', import.meta.url);

/** Reads a file of `libs/domain/python`. It reads synchronously, so call it only while modules load. @param name without ".py" */
export const pythonText = (name: string): string => readFileSync(new URL(`${name}.py`, FOLDER), 'utf8');

/** Joins files into one program: `main` and the `modules` that it can import. @param modules each module comes after the modules that it imports */
export function pythonProgram(main: string, modules: readonly string[]): string {
  const defined = modules.map((name) => {
    const scope = `sys.modules.setdefault("${name}", types.ModuleType("${name}")).__dict__`;
    return `exec(compile(${JSON.stringify(pythonText(name))}, "${name}.py", "exec"), ${scope})\n`;
  });
  return `import sys, types\n${defined.join('')}${pythonText(main)}`;
}

/**
 * A Python expression on one line. It runs the file's `text` and calls its function `called`. It binds no name in the surrounding code.
 *
 * @param args Python expressions; JSON of strings, lists and objects is valid Python, too
 */
export function pythonCall(text: string, called: string, args: readonly string[]): string {
  const run = `exec(compile(${JSON.stringify(text)}, "<${called}>", "exec", dont_inherit=True), scope)`;
  return `(lambda scope: (${run}, scope["${called}"])[1])({})(${args.join(', ')})`;
}
