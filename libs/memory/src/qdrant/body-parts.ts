import { EtudeError } from '@etude/contracts/errors';
import { createHash } from 'node:crypto';
import type { MemoryRecord } from '../record-store.js';
import { pointId } from './collections.js';
import { is, type PartSet } from './record-payload.js';
import { type Condition, NOBODY, type TenantPoints } from './tenant-points.js';

/** In UTF-8; what is longer is cut. */
const CONTENT_BYTES_MAX = 256 * 1024;
/** At most three bytes each. */
const PART_CHARS = 80_000;
const PARTS_PER_REQUEST = 32;

/** How a content is kept in its record's point: as it is, or as the name of its parts. */
export type KeptContent =
  | { readonly content: string; readonly parts: null; readonly cut: false }
  | { readonly content: null; readonly parts: PartSet; readonly cut: true };

/**
 * Contents too long for one point, in points of their own without vectors.
 *
 * They are written before the record that names them, under a name that no other write has, so a record is never without
 * them; what a writer leaves that lost or died is nobody's, and `reconcile` takes it away.
 */
export class BodyParts {
  readonly #points: TenantPoints;
  readonly #collection: string;
  readonly #now: () => number;

  constructor(points: TenantPoints, collection: string, now: () => number) {
    this.#points = points;
    this.#collection = collection;
    this.#now = now;
  }

  /** Stores what is too long. @param set name of the parts, new */
  async keep(record: MemoryRecord, content: string, set: string): Promise<KeptContent> {
    if (content.length * 3 <= CONTENT_BYTES_MAX || Buffer.byteLength(content) <= CONTENT_BYTES_MAX)
      return { content, parts: null, cut: false };
    const pieces = cut(content);
    const parts = { set, count: pieces.length, digest: digestOf(content) };
    await this.#store(record, parts, pieces);
    return { content: null, parts, cut: true };
  }

  /** Once the record is there: an erasure that ran meanwhile may have taken its parts for orphans. */
  async complete(record: MemoryRecord, content: string, parts: PartSet | null): Promise<void> {
    if (parts === null || (await this.#points.count(this.#collection, { must: [is('set', parts.set)] })) === parts.count) return;
    await this.#store(record, parts, cut(content));
  }

  /** null where they are gone, as those of a record that was just replaced or removed. */
  async load(parts: PartSet): Promise<string | null> {
    const pieces: string[] = [];
    for (let offset: string | undefined; ;) {
      const page = await this.#points.scroll(
        this.#collection,
        { must: [is('set', parts.set)] },
        { limit: PARTS_PER_REQUEST, payload: ['index', 'piece'], ...(offset === undefined ? {} : { offset }) },
      );
      for (const { payload } of page.points) pieces[payload['index'] as number] = payload['piece'] as string;
      if (page.next === null) break;
      offset = page.next;
    }
    const content = pieces.join('');
    return digestOf(content) === parts.digest ? content : null;
  }

  async drop(sets: readonly string[]): Promise<void> {
    if (sets.length > 0) await this.#points.delete(this.#collection, { must: [{ key: 'set', match: { any: sets } }] });
  }

  /** Also those that no record names. */
  async dropOf(conditions: readonly Condition[]): Promise<void> {
    await this.#points.delete(this.#collection, { must: conditions });
  }

  async #store({ layer, kind, scope }: MemoryRecord, { set, count }: PartSet, pieces: readonly string[]): Promise<void> {
    const owner = { layer, kind, agent: scope.agent, user: scope.user ?? NOBODY, set, count, written_at: this.#now() };
    const points = pieces.map((piece, index) => ({
      id: pointId(this.#points.tenant, set, index),
      payload: { ...owner, index, piece },
      vector: {},
    }));
    for (let from = 0; from < points.length; from += PARTS_PER_REQUEST) {
      await this.#points.insert(this.#collection, points.slice(from, from + PARTS_PER_REQUEST));
    }
  }
}

export function damaged(where: string, { layer, kind, key }: Pick<MemoryRecord, 'layer' | 'kind' | 'key'>): EtudeError {
  return new EtudeError(
    'MEMORY_UNAVAILABLE',
    `the ${kind} ${JSON.stringify(key.slice(0, 80))} of the ${layer} layer ${where} has lost a part of its content; restore the collections from a snapshot`,
  );
}

/** Never through the middle of a surrogate pair. */
function cut(content: string): string[] {
  const pieces: string[] = [];
  for (let from = 0; from < content.length;) {
    const to = Math.min(content.length, from + PART_CHARS);
    const end = to < content.length && (content.charCodeAt(to - 1) & 0xfc00) === 0xd800 ? to - 1 : to;
    pieces.push(content.slice(from, end));
    from = end;
  }
  return pieces;
}

function digestOf(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}
