import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import { decodeText } from './parse-text.js';
import type { ParsedDocument } from './document.js';
import { textOfHtml } from './parse-html.js';
import { nestedTooDeep, PARSE_LIMITS } from './parse-limits.js';
import { fenced, SectionBuilder, tableRow } from './section-builder.js';

type Root = ReturnType<typeof fromMarkdown>;
type Node = Root['children'][number];
type Item = Extract<Node, { type: 'list' }>['children'][number];

const PIECE_CHARS_MIN = 200_000;

/** Parses GFM with front matter. HTML within it is read as by `parseHtml`, without scripts and hidden parts. */
export function parseMarkdown(bytes: Uint8Array, name: string): ParsedDocument {
  const { title, body } = splitFrontMatter(decodeText(bytes, name));
  refuseDeepNesting(body, name);
  const builder = new SectionBuilder(name);
  for (const piece of piecesOf(body)) {
    const { children } = fromMarkdown(piece, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
    for (const node of children) {
      if (node.type === 'heading') builder.heading(node.depth, inlineText(node));
      else builder.block(blockText(node, name));
    }
  }
  return builder.build(title);
}

/** Splits a long text at headings, because the parser's tree takes about a hundred times the memory of its text. */
function* piecesOf(text: string): Iterable<string> {
  let start = 0;
  let fence: string | null = null;
  for (const match of text.matchAll(/^ {0,3}(?:(`{3,}|~{3,})|#{1,6}[ \t])/gm)) {
    const ticks = match[1];
    if (ticks !== undefined) {
      if (fence === null) fence = ticks;
      else if (ticks.startsWith(fence)) fence = null;
    } else if (fence === null && match.index - start > PIECE_CHARS_MIN) {
      yield text.slice(start, match.index);
      start = match.index;
    }
  }
  yield text.slice(start);
}

/** Refuses a line that opens too many quotes, lists or brackets, because the parser's time grows with the square of their number. */
function refuseDeepNesting(text: string, name: string): void {
  const { nestingMax } = PARSE_LIMITS;
  const containers = new RegExp(`^(?:[ \\t]{0,4}(?:>|[-*+](?=[ \\t])|\\d{1,9}[.)](?=[ \\t]))){${nestingMax + 1}}`, 'm');
  const brackets = new RegExp(`(?:!?\\[){${nestingMax + 1}}|(?:[*_~]{1,2}[^\\s*_~]){${nestingMax * 64}}`);
  const indent = new RegExp(`^[ ]{${nestingMax * 2},}(?:[-*+]|\\d{1,9}[.)])[ \\t]`, 'm');
  if (containers.test(text) || brackets.test(text) || indent.test(text)) throw nestedTooDeep(name);
}

function splitFrontMatter(text: string): { title: string | null; body: string } {
  const match = /^---[ \t]*\n([^]*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)/.exec(text);
  if (!match?.[1] || !/^[\w-]+[ \t]*:/m.test(match[1])) return { title: null, body: text };
  const title = /^title[ \t]*:[ \t]*(.+)$/m
    .exec(match[1])?.[1]
    ?.trim()
    .replace(/^(["'])(.*)\1$/, '$2');
  return { title: title ?? null, body: text.slice(match[0].length) };
}

function blockText(node: Node, name: string): string {
  switch (node.type) {
    case 'code':
      return fenced(node.value, node.lang ?? '');
    case 'html':
      return textOfHtml(node.value, name);
    case 'table':
      return node.children.map((row) => tableRow(row.children.map((cell) => inlineText(cell)))).join('\n');
    case 'list':
      return node.children.map((item, i) => itemText(item, marker(node, i), name)).join('\n');
    case 'blockquote':
    case 'footnoteDefinition':
      return node.children.map((child) => blockText(child, name)).join('\n\n');
    case 'definition':
    case 'thematicBreak':
      return '';
    default:
      return inlineText(node).replaceAll(/[ \t]*\n[ \t]*/g, '\n');
  }
}

function marker(list: Extract<Node, { type: 'list' }>, i: number): string {
  return list.ordered ? `${(list.start ?? 1) + i}. ` : '- ';
}

/** The text of a list item. Its further lines are indented, so that a nested list can be recognised. */
function itemText(item: Item, mark: string, name: string): string {
  const done = item.checked === null || item.checked === undefined ? '' : item.checked ? '[x] ' : '[ ] ';
  const lines = item.children
    .map((child) => blockText(child, name))
    .join('\n')
    .split('\n');
  return lines.map((line, i) => (i === 0 ? `${mark}${done}${line}` : line === '' ? line : `${' '.repeat(mark.length)}${line}`)).join('\n');
}

interface InlineNode {
  readonly type: string;
  readonly value?: string;
  readonly alt?: string | null;
  readonly children?: readonly InlineNode[];
}

function inlineText(node: InlineNode): string {
  if (node.type === 'break') return '\n';
  if (node.type === 'html') return '';
  if (node.type === 'image' || node.type === 'imageReference') return node.alt ?? '';
  return node.value ?? (node.children ?? []).map(inlineText).join('');
}
