import type { getDocumentProxy } from 'unpdf';

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;
type Item = Awaited<ReturnType<Pdf['getOutline']>>[number];

/** An entry of a PDF's outline, which readers show as bookmarks. */
export interface OutlineEntry {
  readonly title: string;
  /** Counted from 1, the outermost. */
  readonly level: number;
  /** Counted from 1. */
  readonly page: number;
}

const ENTRIES_MAX = 5_000;

/** The outline in order, without entries that lead to no page; empty where the PDF has none. */
export async function outlineOf(pdf: Pdf): Promise<readonly OutlineEntry[]> {
  const entries: OutlineEntry[] = [];
  const open = await pdf.getOutline().then((items) => placed(items ?? [], 1));
  for (let next = open.shift(); next !== undefined && entries.length < ENTRIES_MAX; next = open.shift()) {
    const { item, level } = next;
    const page = await pageOf(item, pdf);
    if (page !== null) entries.push({ title: item.title, level, page });
    open.unshift(...placed(item.items as Item[], level + 1));
  }
  return entries;
}

const placed = (items: readonly Item[], level: number) => items.map((item) => ({ item, level }));

/** null where the entry leads to no page of this document: outlines are often damaged when a PDF is cut or joined. */
async function pageOf({ dest }: Item, pdf: Pdf): Promise<number | null> {
  const place: unknown = typeof dest === 'string' ? await pdf.getDestination(dest).catch(() => null) : dest;
  const [page] = Array.isArray(place) ? (place as unknown[]) : [];
  if (typeof page === 'number') return page + 1;
  if (typeof page !== 'object' || page === null) return null;
  return pdf.getPageIndex(page as Parameters<Pdf['getPageIndex']>[0]).then(
    (index) => index + 1,
    () => null,
  );
}
