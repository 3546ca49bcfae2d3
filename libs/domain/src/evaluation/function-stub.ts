/** A setup that ends inside a function which the answer may complete, such as a HumanEval prompt. */
export interface FunctionStub {
  /** The setup above it: imports and helpers. */
  readonly before: string;
  /** The function with its decorators, made valid Python by itself and ending with a line break. */
  readonly text: string;
  /** Indentation of the function's body. */
  readonly indent: string;
}

/** The function `entryPoint` where the setup ends inside its body: behind its signature, docstring or first statements; else null. */
export function endsWithStub(setup: string, entryPoint: string): FunctionStub | null {
  const heads = [...setup.matchAll(new RegExp(`^(?:async[ \\t]+)?def[ \\t]+${entryPoint}[ \\t]*\\(`, 'gm'))];
  const head = heads.at(-1);
  if (!head) return null;
  const bodyAt = afterSignature(setup, head.index + head[0].length);
  if (bodyAt === null) return null;
  const body = setup.slice(bodyAt);
  const statements = body.replaceAll(/("""|''')[\s\S]*?\1/g, '""').replaceAll(/#.*$/gm, '');
  if (/\n\S/.test(statements)) return null;
  const indent = /^([ \t]+)\S/m.exec(body)?.[1] ?? '    ';
  const from = withDecorators(setup, head.index);
  const text = `${setup.slice(from).trimEnd()}\n${/\S/.test(statements) ? '' : `${indent}pass\n`}`;
  return { before: setup.slice(0, from), text, indent };
}

/** Where the decorators directly above a line start. */
function withDecorators(text: string, lineAt: number): number {
  const above = text.slice(0, lineAt).split('\n');
  let first = above.length - 1;
  while (first > 0 && above[first - 1]!.startsWith('@')) first -= 1;
  return above.slice(0, first).join('\n').length + (first > 0 ? 1 : 0);
}

/** Where the body starts: behind the colon that ends the signature whose parenthesis is already open. */
function afterSignature(text: string, from: number): number | null {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    const char = text[at]!;
    if ('([{'.includes(char)) depth += 1;
    else if (')]}'.includes(char)) depth -= 1;
    else if (char === ':' && depth === 0) return at + 1;
  }
  return null;
}

/** The answer as the stub's body, moved to the right indentation where it came without. */
export function continueStub(stub: FunctionStub, code: string): string {
  const lines = code.split('\n');
  const first = lines.findIndex((line) => line.trim() !== '');
  if (first < 0 || indentOf(lines[first]!) > 0) return `${code}\n`;
  const rest = lines.slice(first + 1).filter((line) => line.trim() !== '');
  const opensBlock = /:\s*(?:#.*)?$/.test(lines[first]!);
  const shallowest = Math.min(...rest.map(indentOf));
  const onlyFirstLost =
    rest.length > 0 &&
    shallowest >= stub.indent.length &&
    !(opensBlock && indentOf(rest[0]!) === shallowest && shallowest <= stub.indent.length);
  const moved = lines.map((line, at) => (line.trim() === '' || (onlyFirstLost && at !== first) ? line : stub.indent + line));
  return `${moved.join('\n')}\n`;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
