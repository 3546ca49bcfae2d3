import { bodyStyleOf, LARGER } from './find-headings.js';
import type { Line } from './page-lines.js';

export interface PageLines {
  readonly height: number;
  readonly lines: readonly Line[];
}

/** How many lines from the top and the bottom of a page can be running headers and footers. */
const EDGE_LINES = 2;
/** They stand in this share of the page's height at either end. */
const EDGE_SHARE = 0.1;
const SAME_HEIGHT_POINTS = 4;
const PAGE_NUMBER = /^(?:page\s+)?[-–—\s]*(?:\d{1,5}|[ivxlc]{1,7})[-–—\s]*(?:(?:of|\/)\s*\d{1,5})?$/i;

interface Edge {
  readonly line: Line;
  readonly edge: 'top' | 'bottom';
}

/** Pages without their numbers, and without what stands at the same height of several of them. */
export function withoutFurniture(pages: readonly PageLines[]): Line[][] {
  if (pages.length < 2) return pages.map(({ lines }) => [...lines]);
  const body = bodyStyleOf(pages.flatMap(({ lines }) => lines));
  // Larger ones are headings that happen to begin a page.
  const edges = pages.flatMap((page) => edgesOf(page)).filter(({ line }) => line.size < body.size * LARGER);
  const repeated = repeatedOf(edges, pages.length);
  const bands = edges.filter(({ line }) => repeated.has(line)).map(({ line, edge }) => ({ edge, y: line.y }));
  const dropped = new Set<Line>(repeated);
  for (const { line, edge } of edges) {
    if (PAGE_NUMBER.test(line.text)) dropped.add(line);
    // A header with the section's name changes from page to page, but not its height.
    const others = bands.filter((band) => band.edge === edge && Math.abs(band.y - line.y) <= SAME_HEIGHT_POINTS).length;
    if (others >= pages.length / 2 && /\d/.test(line.text)) dropped.add(line);
  }
  return pages.map(({ lines }) => lines.filter((line) => !dropped.has(line)));
}

function edgesOf({ lines, height }: PageLines): Edge[] {
  const down = lines.toSorted((a, b) => a.y - b.y);
  const heights = [...new Set(down.map(({ y }) => y))];
  const top = heights[Math.min(EDGE_LINES, heights.length) - 1] ?? 0;
  const bottom = heights.at(-Math.min(EDGE_LINES, heights.length)) ?? 0;
  return down.flatMap((line): Edge[] => {
    if (line.y <= top && line.y <= height * EDGE_SHARE) return [{ line, edge: 'top' }];
    return line.y >= bottom && line.y >= height * (1 - EDGE_SHARE) ? [{ line, edge: 'bottom' }] : [];
  });
}

/** The same words, numbers aside, at the same height of at least two pages, and of one in five. */
function repeatedOf(edges: readonly Edge[], pages: number): Set<Line> {
  const groups = new Map<string, Line[]>();
  for (const { line, edge } of edges) {
    const words = line.text.toLowerCase().replaceAll(/\d+|\b[ivxlc]+\b/g, '#');
    const key = `${edge} ${words}`;
    groups.set(key, [...(groups.get(key) ?? []), line]);
  }
  const repeated = new Set<Line>();
  for (const lines of groups.values()) {
    for (const line of lines) {
      const same = lines.filter(({ y }) => Math.abs(y - line.y) <= SAME_HEIGHT_POINTS);
      if (new Set(same.map(({ page }) => page)).size >= Math.max(2, pages / 5)) repeated.add(line);
    }
  }
  return repeated;
}
