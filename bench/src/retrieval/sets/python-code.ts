import { execFileSync } from 'node:child_process';
import { z } from 'zod';
import type { GeneratedSet } from '../test-set.js';
import { type Labelled, selectSet } from './select.js';

/** Code like that of skills. A query is the purpose of a function, and the document is the function's body. */
export const pythonCode: GeneratedSet = {
  name: 'python-code',
  description: "The first sentence of a function's docstring asks for its code, signature included and docstring left out.",
  source: "Python's standard library as /usr/bin/python3 has it",
  licence: 'Python Software Foundation License 2',
  make: () => selectSet(functions(), { documentsMax: 1_000, queriesMax: 240, charsMax: 800 }),
};

const PYTHON = '/usr/bin/python3';
/** One JSON line per function of the standard library that has a docstring. */
const LIST_FUNCTIONS = `
import ast, json, pathlib, sysconfig
root = pathlib.Path(sysconfig.get_path('stdlib'))
skipped = {'test', 'tests', 'idle_test', 'site-packages', 'dist-packages', 'lib2to3', 'idlelib', 'turtledemo', '__pycache__'}
for path in sorted(root.rglob('*.py')):
    relative = path.relative_to(root)
    if skipped & set(relative.parts):
        continue
    try:
        tree = ast.parse(path.read_text('utf-8'))
    except (SyntaxError, UnicodeDecodeError):
        continue
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            doc = ast.get_docstring(node)
            node.body = node.body[1:]
            if node.body:
                print(json.dumps({'key': f'{relative}:{node.lineno}', 'doc': doc, 'code': ast.unparse(node)}))
`;
const Function = z.object({ key: z.string(), doc: z.string(), code: z.string() });

function functions(): Labelled[] {
  const lines = execFileSync(PYTHON, ['-I', '-c', LIST_FUNCTIONS], { encoding: 'utf8', maxBuffer: 256 * 2 ** 20 });
  return lines
    .trim()
    .split('\n')
    .map((line) => Function.parse(JSON.parse(line)))
    .filter(({ code }) => code.length >= 120)
    .map(({ key, doc, code }) => ({ key, question: firstSentence(doc), answer: code }));
}

function firstSentence(doc: string): string | null {
  const paragraph =
    doc
      .split(/\n\s*\n/, 1)[0]
      ?.replaceAll(/\s+/g, ' ')
      .trim() ?? '';
  const sentence = /^.*?[.!?](?=\s|$)/.exec(paragraph)?.[0] ?? paragraph;
  return sentence.length <= 300 ? sentence : null;
}
