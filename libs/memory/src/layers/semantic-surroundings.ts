import type { Fact, Scope } from '@etude/contracts/memory';
import { factKeys } from '@etude/domain/facts/fact-keys';
import type { IndexedText } from '../record-store.js';
import type { LayerDeps } from './layer-deps.js';
import { knownFact, LAYER, type StoredKnownFact } from './semantic-records.js';

/** Calibrated similarity from which on two facts may have to do with each other. */
export const RELATED_MIN = 0.6;
const NEAR_MAX = 16;
const KEYED_MAX = 100;

/** Similarities of current facts of the same tenant, by id. Their owners are looked at when they are loaded. */
export async function similarFacts(deps: LayerDeps, scope: Scope, { text, vector }: IndexedText): Promise<ReadonlyMap<string, number>> {
  const query = { kinds: ['fact'], shown: true, vector, text: vector === null ? text : '', limit: NEAR_MAX } as const;
  const { dense, words } = await deps.store.search(scope, LAYER, query);
  const similar = [...words, ...dense].map(({ key, cosine }) => [key, deps.embedder.profile.calibrate(cosine)] as const);
  return new Map(similar.filter(([, similarity]) => similarity >= RELATED_MIN));
}

/** Facts of exactly this owner that may be the same, or contradict it, as they are stored now; superseded ones among them. */
export async function surroundingFacts(
  { store }: LayerDeps,
  fact: Fact,
  similar: ReadonlyMap<string, number>,
): Promise<readonly StoredKnownFact[]> {
  const { scope } = fact;
  const subject = factKeys(fact);
  const filter = { kinds: ['fact'], where: { subject } } as const;
  const [keyed, near] = await Promise.all([
    store.find(scope, LAYER, filter, { order: 'newest', limit: KEYED_MAX }),
    similar.size === 0 ? [] : store.load(scope, LAYER, 'fact', [...similar.keys()]),
  ]);
  const records = new Map([...keyed, ...near].map((record) => [record.key, record]));
  return [...records.values()]
    .filter((record) => record.scope.agent === scope.agent && record.scope.user === scope.user)
    .map((record) => knownFact(record, similar.get(record.key) ?? 0));
}
