import type { ParsedDocument, Section } from './document.js';
import { type ParseContext, tooLarge } from './parse-limits.js';

interface OpenSection {
  readonly headings: readonly string[];
  readonly level: number;
  readonly blocks: string[];
  page: number | null;
}

const HEADING_CHARS_MAX = 300;

/** Puts headings and blocks that come in reading order into sections. */
export class SectionBuilder {
  private readonly sections: Section[] = [];
  private readonly path: Array<{ readonly level: number; readonly text: string }> = [];
  private open: OpenSection = { headings: [], level: 0, blocks: [], page: null };
  private chars = 0;
  private firstHeading: string | null = null;

  constructor(private readonly context: Pick<ParseContext, 'name' | 'limits'>) {}

  /** @param level from 1, the outermost */
  heading(level: number, raw: string, page: number | null = null): void {
    const text = raw.replaceAll(/\s+/g, ' ').trim().slice(0, HEADING_CHARS_MAX).toWellFormed();
    if (text === '') return;
    this.count(text);
    this.close(level);
    while ((this.path.at(-1)?.level ?? 0) >= level) this.path.pop();
    this.path.push({ level, text });
    this.firstHeading ??= text;
    this.open = { headings: this.path.map((heading) => heading.text), level, blocks: [], page };
  }

  /** A paragraph, a list, a table or a piece of code; empty ones are skipped. */
  block(text: string, page: number | null = null): void {
    const trimmed = text.replace(/^(?:[ \t]*\n)+/, '').trimEnd();
    if (trimmed === '') return;
    this.count(trimmed);
    this.open.page ??= page;
    this.open.blocks.push(trimmed);
  }

  /** @param title where the format says one */
  build(title: string | null): ParsedDocument {
    this.close(0);
    return { title: title?.trim() || this.firstHeading || this.context.name, sections: this.sections };
  }

  /** A heading directly above a deeper one needs no section of its own: it is in that one's path. */
  private close(nextLevel: number): void {
    const { headings, level, blocks, page } = this.open;
    if (blocks.length === 0 && (headings.length === 0 || nextLevel > level)) return;
    this.sections.push({ headings, text: blocks.join('\n\n'), page });
  }

  private count(text: string): void {
    this.chars += text.length;
    const { name, limits } = this.context;
    if (this.chars <= limits.charsMax) return;
    throw tooLarge(name, `holds more than ${limits.charsMax} characters of text`, 'split it into several files');
  }
}

/** Code between fences, so that its empty lines do not end it. */
export function fenced(code: string, language: string): string {
  const ticks = [...code.matchAll(/`{3,}/g)].reduce((longest, [run]) => Math.max(longest, run.length + 1), 3);
  const fence = '`'.repeat(ticks);
  return `${fence}${language}\n${code.replace(/\n+$/, '')}\n${fence}`;
}

/** One line per row, its cells between bars. */
export function tableRow(cells: readonly string[]): string {
  return cells.map((cell) => cell.replaceAll(/\s+/g, ' ').trim()).join(' | ');
}
