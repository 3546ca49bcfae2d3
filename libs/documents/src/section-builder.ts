import { PARSE_LIMITS, tooLarge, type ParsedDocument, type Section } from './document.js';

interface OpenSection {
  readonly headings: readonly string[];
  readonly level: number;
  readonly blocks: string[];
  page: number | null;
}

const HEADING_CHARS_MAX = 300;

/** Builds sections from headings and blocks in reading order. */
export class SectionBuilder {
  private readonly sections: Section[] = [];
  private readonly path: Array<{ readonly level: number; readonly text: string }> = [];
  private open: OpenSection = { headings: [], level: 0, blocks: [], page: null };
  private chars = 0;
  private firstHeading: string | null = null;

  constructor(private readonly name: string) {}

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

  /** Adds a paragraph, a list, a table or a piece of code. Empty ones are skipped. */
  block(text: string, page: number | null = null): void {
    const trimmed = text.replace(/^(?:[ \t]*\n)+/, '').trimEnd();
    if (trimmed === '') return;
    this.count(trimmed);
    this.open.page ??= page;
    this.open.blocks.push(trimmed);
  }

  /** @param title the title that the format gives; null where it gives none */
  build(title: string | null): ParsedDocument {
    this.close(0);
    return { title: title?.replaceAll(/\s+/g, ' ').trim() || this.firstHeading || this.name, sections: this.sections };
  }

  /** Ends the open section. A section without text above a deeper heading is dropped, because the deeper heading's path names it. */
  private close(nextLevel: number): void {
    const { headings, level, blocks, page } = this.open;
    if (blocks.length === 0 && (headings.length === 0 || nextLevel > level)) return;
    this.sections.push({ headings, text: blocks.join('\n\n'), page });
  }

  private count(text: string): void {
    this.chars += text.length;
    const { charsMax } = PARSE_LIMITS;
    if (this.chars > charsMax) throw tooLarge(this.name, `holds more than ${charsMax} characters of text`, 'split it into several files');
  }
}

/** Puts code between fences, so that an empty line within it doesn't end its block. */
export function fenced(code: string, language: string): string {
  const ticks = [...code.matchAll(/`{3,}/g)].reduce((longest, [run]) => Math.max(longest, run.length + 1), 3);
  const fence = '`'.repeat(ticks);
  return `${fence}${language}\n${code.replace(/\n+$/, '')}\n${fence}`;
}

export function tableRow(cells: readonly string[]): string {
  return cells.map((cell) => cell.replaceAll(/\s+/g, ' ').trim()).join(' | ');
}
