/** What a model said beside its code, and the code, with its leading indentation. */
export interface Answer {
  readonly thought: string;
  readonly code: string;
}

interface Block {
  readonly language: string;
  readonly code: string;
  /** Lines of the text that the block takes, fences included. */
  readonly from: number;
  readonly to: number;
}

const PYTHON = new Set(['python', 'py', 'python3', 'py3', 'ipython']);
const FENCE = /^([ \t]*)(`{3,}|~{3,})[ \t]*([^`]*)$/;
const STATEMENT =
  /^(?:async |@\w|#|def \w|class \w|import \w|from \S+ import |return\b|yield\b|raise\b|assert\b|pass$|break$|continue$|global \w|nonlocal \w|del \w|(?:if|elif|for|while|with|match|case)\b.*:|(?:else|try|finally)\s*:|except\b.*:|[\w.[\]'", *()]+(?::[^=]+)?(?:[-+*/%&|^@]|\/\/|\*\*|<<|>>)?=[^=]|[\w.]+\()/;
/** At least four words with nothing of Python between them. */
const PROSE = /^[A-Za-z][\w'’-]*[,;:]?(?: [\w'’"“”(),;:-]+){3,}[.!?:]?$|^[A-Z][\w'’-]*(?: [\w'’-]+)*[.!:?]$/;

/**
 * The code of a model's answer; null where it holds none.
 *
 * Python blocks come before unlabelled ones, and those before any other. Of several the last counts, since models correct
 * themselves downwards, with two exceptions: only blocks that define `entryPoint` count where one does, and a block that merely
 * uses what an earlier one defines is an example of use. A fence that is not closed reaches to the end. Without a fence the text
 * itself is the code if it reads like code from its first to its last line; a sentence before and after is let through.
 */
export function extractAnswer(text: string, entryPoint?: string): Answer | null {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const blocks = fencedBlocks(lines).filter((block) => block.code !== '');
  const block = chooseBlock(blocks, entryPoint);
  if (block) return { thought: without(lines, block.from, block.to), code: block.code };
  return unfencedCode(lines);
}

function fencedBlocks(lines: readonly string[]): Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const open = FENCE.exec(lines[at]!);
    if (!open) continue;
    const [, indent = '', fence = '', info = ''] = open;
    const end = closingLine(lines, at + 1, fence);
    const inside = lines.slice(at + 1, end).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
    const language =
      info
        .trim()
        .toLowerCase()
        .split(/[\s{,:]/)[0] ?? '';
    blocks.push({ language, code: trimBlankLines(inside), from: at, to: end });
    at = end;
  }
  return blocks;
}

function closingLine(lines: readonly string[], from: number, fence: string): number {
  for (let at = from; at < lines.length; at += 1) {
    const line = lines[at]!.trim();
    if (line.length >= fence.length && line === fence[0]!.repeat(line.length)) return at;
  }
  return lines.length;
}

function chooseBlock(blocks: readonly Block[], entryPoint?: string): Block | undefined {
  const python = blocks.filter((block) => PYTHON.has(block.language));
  const unlabelled = blocks.filter((block) => block.language === '');
  let candidates = python.length > 0 ? python : unlabelled.length > 0 ? unlabelled : [...blocks];
  const complete = entryPoint ? candidates.filter((block) => definesName(block.code, entryPoint)) : [];
  if (complete.length > 0) candidates = complete;
  const last = candidates.at(-1);
  if (!last || definedNames(last.code).length > 0) return last;
  return candidates.findLast((block) => definedNames(block.code).some((name) => mentions(last.code, name))) ?? last;
}

/** Functions and classes that the code defines at its top level. */
export function definedNames(code: string): string[] {
  return [...code.matchAll(/^(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_]\w*)/gm)].map((match) => match[1]!);
}

/** Whether the code binds this name at its top level: by def, class, assignment or import. */
export function definesName(code: string, name: string): boolean {
  if (definedNames(code).includes(name)) return true;
  const bound = new RegExp(`^(?:${name}[ \\t]*(?::[^=\\n]+)?=[^=]|(?:from|import)\\b.*\\b${name}[ \\t]*(?:,|#|\\)|$))`, 'm');
  return bound.test(code);
}

function mentions(code: string, name: string): boolean {
  return new RegExp(`\\b${name}\\b`).test(code);
}

function unfencedCode(lines: readonly string[]): Answer | null {
  let from = 0;
  let to = lines.length;
  while (from < to && !isCodeLine(lines[from]!)) from += 1;
  while (to > from && !isCodeLine(lines[to - 1]!)) to -= 1;
  const code = lines.slice(from, to);
  if (!readsLikeCode(code)) return null;
  return { thought: without(lines, from, to - 1), code: code.join('\n').trimEnd() };
}

function isCodeLine(line: string): boolean {
  const text = line.trim();
  return text !== '' && (STATEMENT.test(text) || !PROSE.test(text));
}

function readsLikeCode(lines: readonly string[]): boolean {
  const outside = withoutStrings(lines.join('\n'))
    .split('\n')
    .filter((line) => line.trim() !== '');
  const statements = outside.filter((line) => STATEMENT.test(line.trim())).length;
  return statements > 0 && outside.every(isCodeLine) && STATEMENT.test(outside[0]!.trim());
}

/** Long strings hold prose that is no sign of prose. */
function withoutStrings(code: string): string {
  return code.replaceAll(/("""|''')[\s\S]*?(?:\1|$)/g, 'text()').replaceAll(/#.*$/gm, '#');
}

function trimBlankLines(lines: readonly string[]): string {
  const first = lines.findIndex((line) => line.trim() !== '');
  return first < 0 ? '' : lines.slice(first).join('\n').trimEnd();
}

function without(lines: readonly string[], from: number, to: number): string {
  return `${lines.slice(0, from).join('\n').trim()}\n\n${lines
    .slice(to + 1)
    .join('\n')
    .trim()}`.trim();
}
