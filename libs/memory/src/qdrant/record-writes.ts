import type { Change, Model, VectorModel } from '../record-store.js';
import { type CollectionNames, vectorName, WORDS } from './store-schema.js';
import { insertRequests, type PointVectors } from './point-vectors.js';
import { contentOf, hasMark, is, markOf, marksIn, ownerPayload, recordId, revisionIn, STATE } from './record-points.js';
import type { Conditions, Payload, Point, TenantPoints } from './tenant-points.js';
import { errorCode } from '@etude/contracts/errors';
import { requireOwn } from '@etude/domain/ports/memory';
import { randomUUID } from 'node:crypto';

export interface WriteDeps {
  readonly points: TenantPoints;
  readonly layers: CollectionNames['layers'];
  readonly vectors: PointVectors;
  readonly model: Model;
  readonly models: () => Promise<readonly VectorModel[]>;
}

/** A change with the id and the vectors of its point. An update has no vectors. */
type Prepared<C extends Change = Change> = C & Pick<Point, 'id' | 'vector'>;
type Insert = Prepared<Extract<Change, { do: 'insert' }>>;

/** Number of inserts per request, and of states that are read back with one request. */
const INSERTS_PER_REQUEST = 1_000;

/**
 * Writes one tenant's records by compare-and-set.
 *
 * Qdrant doesn't say whether a conditional write took place. So each write leaves its writer's mark, which is read back. Every request may
 * be repeated after a lost answer: the condition of the repeat fails, and the mark shows that the first try took place.
 */
export async function writeRecords(deps: WriteDeps, changes: readonly Change[]): Promise<boolean[]> {
  // All changes are checked before anything is written.
  const prepared = changes.map((change) => preparedChange(deps, change));
  const answers = changes.map(() => false);
  for (let at = 0; at < prepared.length;) {
    const change = prepared[at]!;
    if (change.do === 'insert') {
      const run = runOfInserts(prepared, at);
      for (const [i, taken] of (await insertAll(deps, run)).entries()) answers[at + i] = taken;
      at += run.length;
    } else {
      answers[at] = await swap(deps, change);
      if (!answers[at]) break;
      at += 1;
    }
  }
  return answers;
}

function preparedChange({ points: { tenant }, vectors, model }: WriteDeps, change: Change): Prepared {
  const { scope, kind, key } = change.record;
  requireOwn(tenant, scope);
  return { ...change, id: recordId(tenant, kind, key), vector: change.do === 'update' ? {} : vectors.of(change.indexed, model) };
}

async function insertAll(deps: WriteDeps, run: readonly Insert[]): Promise<boolean[]> {
  const collection = deps.layers[run[0]!.record.layer];
  const prepared = new Map<string, { readonly at: number; readonly writer: string; readonly point: Point }>();
  for (const [at, { record, id, vector }] of run.entries()) {
    // If a key occurs twice, the first insert counts.
    if (prepared.has(id)) continue;
    const writer = randomUUID();
    const content = await contentOf(record);
    const payload = { ...ownerPayload(record), content, ...textState(deps, vector), revision: 1, ...markOf(1, writer) };
    prepared.set(id, { at, writer, point: { id, payload, vector } });
  }
  for await (const some of insertRequests([...prepared.values()])) {
    const points = some.map(({ point }) => point);
    await deps.points.insert(collection, points);
  }
  const states = await statesOf(deps.points, collection, [...prepared.keys()]);
  const answers = run.map(() => false);
  // A missing record was inserted, then removed by somebody else.
  for (const [id, { at, writer }] of prepared) answers[at] = !states.has(id) || hasMark(states.get(id), 1, writer);
  return answers;
}

async function swap(deps: WriteDeps, { id, vector, record, revision, ...change }: Exclude<Prepared, Insert>): Promise<boolean> {
  const { points, layers } = deps;
  const collection = layers[record.layer];
  const at = (known: number): Conditions => [{ has_id: [id] }, is('revision', known)];
  const stateNow = async () => (await statesOf(points, collection, [id])).get(id);
  const writer = randomUUID();
  const content = await contentOf(record);
  const payload = { ...ownerPayload(record), content, revision: revision + 1, ...markOf(revision + 1, writer) };
  if (change.do === 'update') {
    await points.setPayload(collection, payload, at(revision));
    return hasMark(await stateNow(), revision + 1, writer);
  }
  const before = await stateNow();
  if (before === undefined || revisionIn(before) !== revision) return false;
  const whole = { ...marksIn(before), ...payload, ...textState(deps, vector) };
  await points.replace(collection, [{ id, payload: whole, vector }], at(revision));
  const taken = hasMark(await stateNow(), revision + 1, writer);
  if (taken) await deleteStale(deps, collection, vector, at(revision + 1));
  return taken;
}

async function statesOf(points: TenantPoints, collection: string, ids: readonly string[]): Promise<ReadonlyMap<string, Payload>> {
  const found = await points.scroll(collection, [{ has_id: ids }], { limit: ids.length, payload: STATE });
  return new Map(found.points.map(({ id, payload }) => [id, payload]));
}

/** Payload about a record's texts: whether they have words, the weights of the words, and the models that embed the texts as zeros. */
function textState({ vectors, model }: WriteDeps, vector: Point['vector']): Payload {
  const worded = WORDS in vector;
  return { worded, w: vectors.weightsIn(vector), blank: worded && Object.keys(vector).length === 1 ? [model.name] : [] };
}

/** The inserts from `from` on that go into the same layer; they are written together. */
function runOfInserts(changes: readonly Prepared[], from: number): Insert[] {
  const run: Insert[] = [];
  for (const change of changes.slice(from, from + INSERTS_PER_REQUEST)) {
    if (change.do !== 'insert' || (run[0] !== undefined && change.record.layer !== run[0].record.layer)) break;
    run.push(change);
  }
  return run;
}

/**
 * Deletes vectors that the replaced point may have and the new one hasn't. Before 1.19, Qdrant keeps them if the point's segment was
 * rewritten. Then the old words would find the new record, and a move to another model would skip it.
 */
async function deleteStale({ points, models }: WriteDeps, collection: string, vector: Point['vector'], at: Conditions): Promise<void> {
  const names = [WORDS, ...(await models()).map(({ name }) => vectorName(name))];
  // Deletes one vector per request, because a model may have been dropped meanwhile.
  for (const name of names.filter((one) => !(one in vector)))
    await points.deleteVectors(collection, [name], at).catch((error: unknown) => {
      if (errorCode(error) !== 'NOT_FOUND') throw error;
    });
}
