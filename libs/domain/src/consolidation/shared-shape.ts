import type { Json } from '@etude/contracts/json';

/** A function among several that may differ in literals only. */
export interface ShapedCode {
  readonly code: string;
  readonly entryPoint: string;
}

interface Token {
  readonly text: string;
  readonly kind: 'comment' | 'literal' | 'name' | 'space' | 'other';
  /** In the code. */
  readonly at: number;
}

const TOKEN =
  /(?<comment>#[^\n]*)|(?<literal>[rRbBuUfF]{0,2}(?:"""(?:\\[^]|[^\\])*?"""|'''(?:\\[^]|[^\\])*?'''|"(?:\\[^]|[^"\\\n])*"|'(?:\\[^]|[^'\\\n])*')|(?:0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)[jJ]?|\b(?:True|False|None)\b)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<space>(?:[ \t\r]|\\\n)+)|(?<other>[^])/gu;

function tokensOf(code: string): readonly Token[] {
  return [...code.matchAll(TOKEN)].map(({ 0: text, index, groups = {} }) => {
    const kind = (['comment', 'literal', 'name', 'space'] as const).find((one) => groups[one] !== undefined) ?? 'other';
    return { text, kind, at: index };
  });
}

/** `text`: the code without comments, blank lines and docstrings, with a mark for each literal and for the entry point. */
function shapeOf({ code, entryPoint }: ShapedCode) {
  const tokens = tokensOf(code);
  const literals: Token[] = [];
  let [line, depth, lines] = ['', 0, ''];
  const endLine = () => {
    if (line.trim() !== '') lines += `${line}\n`;
    line = '';
  };
  for (const [place, token] of tokens.entries()) {
    if (token.text === '\n' && depth === 0) endLine();
    else if (token.kind === 'space' || token.text === '\n') line += line === '' ? token.text : '';
    else if (token.kind !== 'comment' && !(depth === 0 && line.trim() === '' && isDocstring(tokens, place))) {
      if (token.kind === 'literal') literals.push(token);
      depth += depthOf(token);
      line += `${token.kind === 'literal' ? '\u0000' : token.text === entryPoint ? '\u0001' : token.text} `;
    }
  }
  endLine();
  return { tokens, text: lines, literals };
}

/** Whether a text is a whole line, so that it does nothing. */
function isDocstring(tokens: readonly Token[], place: number): boolean {
  const next = tokens.slice(place + 1).find(({ kind }) => kind !== 'space' && kind !== 'comment');
  return /["']$/.test(tokens[place]!.text) && (next === undefined || next.text === '\n');
}

/** Groups of codes that differ only in literals and the function's name, the largest group first. */
export function alikeInShape<T extends ShapedCode>(members: readonly T[]): ReadonlyArray<readonly T[]> {
  return [...Map.groupBy(members, (member) => shapeOf(member).text).values()].toSorted((a, b) => b.length - a.length);
}

/** Equal for codes that differ in comments, docstrings, blanks and the name of the function only. */
export function codeKey(member: ShapedCode): string {
  const { text, literals } = shapeOf(member);
  return JSON.stringify([text, ...literals.map((literal) => literal.text)]);
}

/**
 * One function for codes of one shape (`alikeInShape`): the first code, whose differing literals become keyword parameters with these
 * literals as defaults. null if no rule can do that: for recursion, and for literals outside the function or without a form in JSON.
 * `fixed`: for each member, the arguments that replace its literals. The first has none, because its literals are the defaults.
 *
 * @param name of the function
 */
export function sharedFunction(members: readonly ShapedCode[], name: string) {
  const shapes = members.map(shapeOf);
  const [first] = shapes;
  const head = first === undefined ? null : headOf(members[0]!, first.tokens);
  if (first === undefined || head === null) return null;
  const taken = new Set(first.tokens.map(({ text }) => text));
  const parameters = new Map<string, { readonly name: string; readonly literal: string; readonly values: readonly Json[] }>();
  const replaced = new Map<Token, string>([[head.name, name]]);
  for (const [place, literal] of first.literals.entries()) {
    const texts = shapes.map(({ literals }) => literals[place]!.text);
    if (texts.every((text) => text === literal.text)) continue;
    const values = texts.map(valueOf);
    if (!values.every((value) => value !== undefined) || literal.at < head.bodyAt || literal.at >= head.endAt) return null;
    const key = JSON.stringify(values);
    const known = parameters.get(key) ?? { name: freeName(values[0]!, taken), literal: literal.text, values };
    taken.add(known.name);
    parameters.set(key, known);
    replaced.set(literal, known.name);
  }
  const all = [...parameters.values()];
  replaced.set(head.close, `${all.length === 0 ? '' : head.join}${all.map((one) => `${one.name}=${one.literal}`).join(', ')})`);
  return {
    code: first.tokens.map((token) => replaced.get(token) ?? token.text).join(''),
    entryPoint: name,
    fixed: members.map((_, at) => (at === 0 ? {} : Object.fromEntries(all.map((one) => [one.name, one.values[at]!])))),
  };
}

interface Head {
  readonly name: Token;
  /** The bracket that ends the parameters. */
  readonly close: Token;
  /** Text between the parameters and the added ones, which are keyword-only. */
  readonly join: string;
  readonly bodyAt: number;
  readonly endAt: number;
}

/** null if the function isn't at the top level, is defined again, or takes any keyword. */
function headOf({ code, entryPoint }: ShapedCode, tokens: readonly Token[]): Head | null {
  const marked = tokens.filter(({ kind }) => kind !== 'space' && kind !== 'comment');
  const [name, again] = marked.filter(({ text }) => text === entryPoint);
  if (name === undefined || again !== undefined || !/(^|\n)def[ \t]+$/.test(code.slice(0, name.at))) return null;
  const start = marked.indexOf(name) + 1;
  let [end, depth] = [start, 0];
  do depth += depthOf(marked[end]);
  while (depth > 0 && (end += 1) < marked.length);
  const [close, inside] = [marked[end], marked.slice(start + 1, end).filter(({ text }) => text !== '\n')];
  const stars = inside.filter(({ text }) => text === '*').length;
  if (close?.text !== ')' || stars > 1) return null;
  const comma = inside.length === 0 || inside.at(-1)!.text === ',' ? '' : ', ';
  const length = code.slice(close.at).search(/\n(?=[^\s#)])/);
  return { name, close, join: `${comma}${stars === 1 ? '' : '*, '}`, bodyAt: close.at, endAt: length < 0 ? Infinity : close.at + length };
}

function depthOf(token: Token | undefined): number {
  return /^[([{]$/.test(token?.text ?? '') ? 1 : /^[)\]}]$/.test(token?.text ?? '') ? -1 : 0;
}

/** The value of a literal, where JSON can hold exactly this one. */
function valueOf(literal: string): Json | undefined {
  if (literal === 'None') return null;
  if (literal === 'True' || literal === 'False') return literal === 'True';
  if (/^(["'])[^\\]*\1$/.test(literal) && !/^["']{3}/.test(literal)) return literal.slice(1, -1);
  const number = /^\d+(?:\.\d+)?$/.test(literal) ? Number(literal) : Number.NaN;
  // Python tells 2.0 from 2, JSON doesn't.
  const isExact = literal.includes('.') ? !Number.isInteger(number) : Number.isSafeInteger(number);
  return isExact && !Number.isNaN(number) ? number : undefined;
}

function freeName(value: Json, taken: ReadonlySet<string>): string {
  const name = typeof value === 'number' ? 'number' : typeof value === 'string' ? 'text' : 'flag';
  for (let count = 1; ; count += 1) {
    const numbered = count === 1 ? name : `${name}_${count}`;
    if (!taken.has(numbered)) return numbered;
  }
}
