import { type DefaultTreeAdapterTypes, defaultTreeAdapter, parse, parseFragment, type TreeAdapter } from 'parse5';
import { decodeText } from './parse-text.js';
import type { ParsedDocument } from './document.js';
import { nestedTooDeep, PARSE_LIMITS } from './parse-limits.js';
import { fenced, SectionBuilder, tableRow } from './section-builder.js';

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;
type Adapter = TreeAdapter<DefaultTreeAdapterTypes.DefaultTreeAdapterMap>;

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
/** Elements that are not shown as text or don't belong to the document's content. */
const SKIPPED = words(
  'script style template noscript iframe object embed svg math canvas audio video map head select datalist button input textarea nav dialog',
);
const BLOCKS = words(
  'address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer form header hr html legend li main ol p section summary ul',
);

/** @throws EtudeError INVALID_ARGUMENT for tags nested too deep; PAYLOAD_TOO_LARGE */
export function parseHtml(bytes: Uint8Array, name: string): ParsedDocument {
  const root = parse(decodeText(bytes, name), { treeAdapter: shallowAdapter(name) });
  const walk = new HtmlWalk(new SectionBuilder(name));
  const title = findElement(root, 'title');
  walk.visit(findElement(root, 'main') ?? root);
  return walk.end(title ? textOf(title) : null);
}

/** The visible text of a piece of HTML within another text. */
export function textOfHtml(html: string, name: string): string {
  const walk = new HtmlWalk(new SectionBuilder(name));
  walk.visit(parseFragment(html, { treeAdapter: shallowAdapter(name) }));
  return walk
    .end(null)
    .sections.map((section) => [section.headings.at(-1) ?? '', section.text].join('\n\n').trim())
    .join('\n\n');
}

/** Refuses deep nesting while the tree is built, because its cost grows with the square of the depth. */
function shallowAdapter(name: string): Adapter {
  let depth = 0;
  return {
    ...defaultTreeAdapter,
    onItemPush: () => {
      depth += 1;
      if (depth > PARSE_LIMITS.nestingMax) throw nestedTooDeep(name);
    },
    onItemPop: () => {
      depth -= 1;
    },
  };
}

class HtmlWalk {
  private inline = '';

  constructor(private readonly builder: SectionBuilder) {}

  visit(node: Node): void {
    if (node.nodeName === '#text') this.inline += (node as DefaultTreeAdapterTypes.TextNode).value.replaceAll(/\s+/g, ' ');
    else if ('tagName' in node) this.element(node);
    else if ('childNodes' in node) node.childNodes.forEach((child) => this.visit(child));
  }

  end(title: string | null): ParsedDocument {
    this.flush();
    return this.builder.build(title);
  }

  private element(element: Element): void {
    const { tagName } = element;
    const level = /^h([1-6])$/.exec(tagName)?.[1];
    if (isHidden(element)) return;
    if (tagName === 'br') this.inline += '\n';
    else if (tagName === 'img') this.inline += ` ${attribute(element, 'alt') ?? ''} `;
    else if (level !== undefined) this.whole(() => this.builder.heading(Number(level), textOf(element)));
    else if (tagName === 'pre') this.whole(() => this.builder.block(fenced(textOf(element, true).replace(/^\n/, ''), languageOf(element))));
    else if (tagName === 'table') this.whole(() => this.builder.block(rowsOf(element).join('\n')));
    else this.children(element, BLOCKS.has(tagName));
  }

  private children(element: Element, isBlock: boolean): void {
    if (isBlock) this.flush();
    if (element.tagName === 'li') this.inline = '- ';
    element.childNodes.forEach((child) => this.visit(child));
    if (isBlock) this.flush();
  }

  private whole(add: () => void): void {
    this.flush();
    add();
  }

  private flush(): void {
    const text = this.inline
      .replaceAll(/ *\n */g, '\n')
      .replaceAll(/ {2,}/g, ' ')
      .trim();
    this.inline = '';
    if (text !== '-') this.builder.block(text);
  }
}

function isHidden(element: Element): boolean {
  if (SKIPPED.has(element.tagName) || attribute(element, 'hidden') !== undefined) return true;
  if (attribute(element, 'aria-hidden')?.toLowerCase() === 'true') return true;
  return /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(attribute(element, 'style') ?? '');
}

const attribute = (element: Element, name: string): string | undefined => element.attrs.find((attr) => attr.name === name)?.value;

function textOf(node: Node, keepLines = false): string {
  if (node.nodeName === '#text') return (node as DefaultTreeAdapterTypes.TextNode).value;
  if ('tagName' in node) {
    if (node.tagName === 'br') return '\n';
    if (node.tagName === 'img') return attribute(node, 'alt') ?? '';
    if (node.tagName !== 'title' && isHidden(node)) return '';
  }
  const text = 'childNodes' in node ? node.childNodes.map((child) => textOf(child, keepLines)).join('') : '';
  return keepLines ? text : text.replaceAll(/\s+/g, ' ');
}

function languageOf(pre: Element): string {
  const code = pre.childNodes.find((child): child is Element => 'tagName' in child && child.tagName === 'code');
  const classes = `${attribute(pre, 'class') ?? ''} ${code ? (attribute(code, 'class') ?? '') : ''}`;
  return /\b(?:language|lang)-([\w+#-]+)/.exec(classes)?.[1] ?? '';
}

/** The caption and rows of a table. A table within a cell becomes the cell's text. */
function rowsOf(node: Element): string[] {
  return node.childNodes.flatMap((child): string[] => {
    if (!('tagName' in child) || isHidden(child)) return [];
    if (child.tagName === 'caption') return [textOf(child).trim()];
    if (child.tagName !== 'tr') return rowsOf(child);
    const cells = child.childNodes.filter((cell): cell is Element => 'tagName' in cell && !isHidden(cell));
    return [tableRow(cells.map((cell) => textOf(cell)))];
  });
}

function findElement(node: Node, tagName: string): Element | undefined {
  if ('tagName' in node && node.tagName === tagName) return node;
  if (!('childNodes' in node)) return undefined;
  for (const child of node.childNodes) {
    const found = findElement(child, tagName);
    if (found) return found;
  }
  return undefined;
}
