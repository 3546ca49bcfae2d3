import type { Change, StoreOptions, VectorModel } from '../record-store.js';
import { type CollectionNames, vectorName, WORDS } from './collections.js';
import { denseOf, insertRequests, type PointVectors } from './point-vectors.js';
import { contentOf, hasMark, is, markOf, marksIn, ownerPayload, recordId, revisionIn, STATE } from './record-points.js';
import type { Conditions, FoundPoint, Payload, Point, TenantPoints } from './tenant-points.js';
import { errorCode } from '@etude/contracts/errors';
import type { MemoryLayer } from '@etude/contracts/task';
import { requireOwn } from '@etude/domain/ports/memory';
import { randomUUID } from 'node:crypto';

type Insert = Extract<Change, { do: 'insert' }>;

type Replace = Extract<Change, { do: 'replace' }>;

type Swap = Exclude<Change, Insert>;

export interface WriteDeps {
  readonly points: TenantPoints;
  readonly names: CollectionNames;
  readonly vectors: PointVectors;
  readonly model: StoreOptions['model'];
  readonly models: () => Promise<readonly VectorModel[]>;
}

/** Also how many states are read back at once. */
const INSERTS_PER_REQUEST = 1_000;

/**
 * Writes one tenant's records by compare-and-set.
 *
 * Qdrant doesn't say whether a conditional write took place. So each write leaves its writer's mark, which is read back. Every request may
 * be repeated after a lost answer: its condition fails the second time, and the mark shows that it took place.
 */
export class RecordWrites {
  readonly #deps: WriteDeps;
  readonly #tenant: string;

  constructor(deps: WriteDeps) {
    this.#deps = deps;
    this.#tenant = deps.points.tenant;
  }

  async write(changes: readonly Change[]): Promise<boolean[]> {
    for (const change of changes) this.#check(change);
    const answers = changes.map(() => false);
    for (let at = 0; at < changes.length;) {
      const change = changes[at];
      if (change === undefined) break;
      if (change.do === 'insert') {
        const run = runOfInserts(changes, at);
        for (const [i, taken] of (await this.#insertAll(run)).entries()) answers[at + i] = taken;
        at += run.length;
      } else {
        const taken = await this.#swap(change);
        answers[at] = taken;
        if (!taken) break;
        at += 1;
      }
    }
    return answers;
  }

  /** Runs for all changes before anything is written. */
  #check(change: Change): void {
    requireOwn(this.#tenant, change.record.scope);
    if (change.do === 'update') return;
    denseOf(
      change.indexed.map(({ vector }) => vector),
      this.#deps.model,
    );
  }

  async #statesOf(layer: MemoryLayer, ids: readonly string[]): Promise<FoundPoint[]> {
    const page = { limit: ids.length, payload: STATE };
    return (await this.#deps.points.scroll(this.#deps.names.layers[layer], [{ has_id: ids }], page)).points;
  }

  async #insertAll(run: readonly Insert[]): Promise<boolean[]> {
    const layer = run[0]?.record.layer ?? 'semantic';
    const prepared = new Map<string, { readonly at: number; readonly writer: string; readonly point: Point }>();
    for (const [at, change] of run.entries()) {
      const id = this.#idOf(change);
      // If a key occurs twice, the first insert counts.
      if (prepared.has(id)) continue;
      const writer = randomUUID();
      const vector = this.#vectorOf(change);
      const content = await contentOf(change.record);
      const payload = { ...ownerPayload(change.record), content, ...this.#textState(vector), revision: 1, ...markOf(1, writer) };
      prepared.set(id, { at, writer, point: { id, payload, vector } });
    }
    for await (const some of insertRequests([...prepared.values()])) {
      const points = some.map(({ point }) => point);
      await this.#deps.points.insert(this.#deps.names.layers[layer], points);
    }
    const found = await this.#statesOf(layer, [...prepared.keys()]);
    const states = new Map(found.map(({ id, payload }) => [id, payload]));
    const answers = run.map(() => false);
    // A missing record was inserted, then removed by somebody else.
    for (const [id, { at, writer }] of prepared) answers[at] = !states.has(id) || hasMark(states.get(id), 1, writer);
    return answers;
  }

  async #swap(change: Swap): Promise<boolean> {
    const { record, revision } = change;
    const { points, names, models } = this.#deps;
    const id = this.#idOf(change);
    const collection = names.layers[record.layer];
    const at = (known: number): Conditions => [{ has_id: [id] }, is('revision', known)];
    const stateNow = async () => (await this.#statesOf(record.layer, [id]))[0]?.payload;
    const writer = randomUUID();
    const content = await contentOf(record);
    const payload = { ...ownerPayload(record), content, revision: revision + 1, ...markOf(revision + 1, writer) };
    if (change.do === 'update') {
      await points.setPayload(collection, payload, at(revision));
      return hasMark(await stateNow(), revision + 1, writer);
    }
    const before = await stateNow();
    if (before === undefined || revisionIn(before) !== revision) return false;
    const vector = this.#vectorOf(change);
    const whole = { ...marksIn(before), ...payload, ...this.#textState(vector) };
    await points.replace(collection, [{ id, payload: whole, vector }], at(revision));
    const taken = hasMark(await stateNow(), revision + 1, writer);
    if (taken) await deleteStale(points, collection, staleNames(vector, await models()), at(revision + 1));
    return taken;
  }

  /**
   * Payload about a record's texts: whether they have words, the weights of the words, and models for which the texts have no direction.
   */
  #textState(vector: Point['vector']): Payload {
    const worded = WORDS in vector;
    return {
      worded,
      w: this.#deps.vectors.weightsIn(vector),
      blank: worded && Object.keys(vector).length === 1 ? [this.#deps.model.name] : [],
    };
  }

  #vectorOf({ indexed }: Insert | Replace): Point['vector'] {
    return this.#deps.vectors.of(indexed, this.#deps.model);
  }

  #idOf({ record }: Change): string {
    return recordId(this.#tenant, record.kind, record.key);
  }
}

/** The inserts from `from` on that go into the same layer; they are written together. */
function runOfInserts(changes: readonly Change[], from: number): Insert[] {
  const run: Insert[] = [];
  for (const change of changes.slice(from, from + INSERTS_PER_REQUEST)) {
    if (change.do !== 'insert' || (run[0] !== undefined && change.record.layer !== run[0].record.layer)) break;
    run.push(change);
  }
  return run;
}

/**
 * Vectors that the replaced point may have and the new one hasn't. Before 1.19, Qdrant keeps them if the point's segment was rewritten.
 * Then the old words would find the new record, and a move to another model would skip it.
 */
function staleNames(vector: Point['vector'], models: readonly VectorModel[]): readonly string[] {
  return [WORDS, ...models.map(({ name }) => vectorName(name))].filter((name) => !(name in vector));
}

/** Deletes them one by one, because a model may have been dropped meanwhile. */
async function deleteStale(points: TenantPoints, collection: string, names: readonly string[], conditions: Conditions): Promise<void> {
  for (const name of names) {
    await points.deleteVectors(collection, [name], conditions).catch((error: unknown) => {
      if (errorCode(error) !== 'NOT_FOUND') throw error;
    });
  }
}
