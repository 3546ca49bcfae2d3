import { type DefaultTreeAdapterTypes, parse, parseFragment } from 'parse5';
import { fenced, type ParsedDocument, SectionBuilder, tableRow } from './document.js';

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
/** Elements that are hidden or don't belong to the document's content. */
const SKIPPED = words(
  'script style template noscript iframe object embed svg math canvas audio video map head select datalist button input textarea nav dialog',
);
const BLOCKS = words(
  'address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html legend main ol p pre section summary table ul',
);

/** @throws EtudeError PAYLOAD_TOO_LARGE */
export function parseHtml(text: string, name: string): ParsedDocument {
  const root = parse(text);
  const builder = new SectionBuilder(name);
  const title = findElement(root, 'title');
  new HtmlWalk(builder).whole(findElement(root, 'main') ?? root);
  return builder.build(title ? textOf(title) : null);
}

/** @throws EtudeError PAYLOAD_TOO_LARGE */
export function addHtml(html: string, builder: SectionBuilder): void {
  new HtmlWalk(builder).whole(parseFragment(html));
}

class HtmlWalk {
  private inline = '';

  constructor(private readonly out: Pick<SectionBuilder, 'heading' | 'block'>) {}

  whole(node: Node): void {
    if ('childNodes' in node) node.childNodes.forEach((child) => this.visit(child));
    this.flush();
  }

  private visit(node: Node): void {
    if (node.nodeName === '#text') this.inline += (node as DefaultTreeAdapterTypes.TextNode).value.replaceAll(/\s+/g, ' ');
    else if ('tagName' in node) this.element(node);
  }

  private element(element: Element): void {
    const { tagName } = element;
    const level = /^h([1-6])$/.exec(tagName)?.[1];
    if (isHidden(element)) return;
    if (tagName === 'br') this.inline += '\n';
    else if (tagName === 'img') this.inline += ` ${attribute(element, 'alt') ?? ''} `;
    else if (!BLOCKS.has(tagName)) element.childNodes.forEach((child) => this.visit(child));
    else {
      this.flush();
      if (level !== undefined) this.out.heading(Number(level), textOf(element));
      else if (tagName === 'pre') this.out.block(fenced(textOf(element).replace(/^\n/, ''), languageOf(element)));
      else if (tagName === 'table') this.out.block(rowsOf(element).join('\n'));
      else if (tagName === 'ul' || tagName === 'ol') this.out.block(listText(element));
      else this.whole(element);
    }
  }

  private flush(): void {
    this.out.block(
      this.inline
        .replaceAll(/ *\n */g, '\n')
        .replaceAll(/ {2,}/g, ' ')
        .trim(),
    );
    this.inline = '';
  }
}

/** A list with one item per line. Further lines of an item are indented, so that nested lists stay recognisable. */
function listText(list: Element): string {
  const first = Number(attribute(list, 'start') ?? 1);
  const items = list.childNodes.filter((child) => child.nodeName === 'li');
  return items
    .map((item, i) => {
      const mark = list.tagName === 'ol' ? `${first + i}. ` : '- ';
      const blocks: string[] = [];
      new HtmlWalk({ heading: (_, text) => blocks.push(text), block: (text) => text !== '' && blocks.push(text) }).whole(item);
      return mark + blocks.join('\n').replaceAll(/\n(?=.)/g, `\n${' '.repeat(mark.length)}`);
    })
    .join('\n');
}

function isHidden(element: Element): boolean {
  if (SKIPPED.has(element.tagName) || attribute(element, 'hidden') !== undefined) return true;
  if (attribute(element, 'aria-hidden')?.toLowerCase() === 'true') return true;
  return /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(attribute(element, 'style') ?? '');
}

const attribute = (element: Element, name: string): string | undefined => element.attrs.find((attr) => attr.name === name)?.value;

function textOf(node: Node): string {
  if (node.nodeName === '#text') return (node as DefaultTreeAdapterTypes.TextNode).value;
  if ('tagName' in node) {
    if (node.tagName === 'br') return '\n';
    if (node.tagName === 'img') return attribute(node, 'alt') ?? '';
    if (node.tagName !== 'title' && isHidden(node)) return '';
  }
  return 'childNodes' in node ? node.childNodes.map(textOf).join('') : '';
}

function languageOf(pre: Element): string {
  const code = pre.childNodes.find((child): child is Element => 'tagName' in child && child.tagName === 'code');
  const classes = `${attribute(pre, 'class') ?? ''} ${code ? (attribute(code, 'class') ?? '') : ''}`;
  return /\b(?:language|lang)-([\w+#-]+)/.exec(classes)?.[1] ?? '';
}

function rowsOf(node: Element): string[] {
  return node.childNodes.flatMap((child): string[] => {
    if (!('tagName' in child) || isHidden(child)) return [];
    if (child.tagName === 'caption') return [tableRow([textOf(child)])];
    if (child.tagName !== 'tr') return rowsOf(child);
    const cells = child.childNodes.filter((cell): cell is Element => 'tagName' in cell && !isHidden(cell));
    return [tableRow(cells.map((cell) => textOf(cell)))];
  });
}

function findElement(node: Node, tagName: string): Element | undefined {
  if ('tagName' in node && node.tagName === tagName) return node;
  return 'childNodes' in node ? node.childNodes.map((child) => findElement(child, tagName)).find(Boolean) : undefined;
}
