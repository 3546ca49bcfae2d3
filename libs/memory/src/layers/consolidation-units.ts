import type { ConsolidationUnit, ConsolidationUnits } from '@etude/domain/ports/consolidation-units';
import type { MemoryOutbox } from '@etude/domain/ports/memory';
import { contentDigest } from '@etude/domain/skills/content-digest';
import type { ProceduralLayer, SemanticLayer } from '../memory.js';
import { knownFact } from './fact-records.js';
import { type LayerDeps, untilTaken } from './records.js';
import { semanticLayer, type SemanticOptions } from './semantic-layer.js';
import { changeOf, type ShadowRecord, shadowStore } from './shadow-store.js';
import { findHeads, loadHead, loadParts, openingOf, setHead, type UnitHead } from './unit-records.js';
import { undoUnit } from './unit-undo.js';

export interface UnitDeps extends LayerDeps, SemanticOptions {
  readonly semantic: SemanticLayer;
  readonly procedural: ProceduralLayer;
}

/**
 * A unit is written as one list of changes: first its own record, then facts and notes of the episodes that were read. SQLite applies all
 * or nothing. In Qdrant a crash may leave a part; the next call for the agent then completes the unit. Skills go through the outbox
 * afterwards.
 */
export function consolidationUnits(deps: UnitDeps): ConsolidationUnits {
  const { store } = deps;
  return {
    async stage(unit) {
      const { written, ...shadow } = await shadowOf(deps, unit);
      return { ...shadow, commit: (outbox) => commit(deps, unit, written, outbox) };
    },
    isApplied: async (unit) => (await loadHead(store, unit)) !== null,
    async complete(owner, outbox) {
      for (const head of await findHeads(store, owner, { status: ['committing', 'undoing'] }))
        if (head.state === 'undoing') await undoUnit(deps, head);
        else await completeUnit(deps, head, outbox);
    },
    async undo({ tenant, run, agent, by }) {
      const heads = await findHeads(store, { tenant, agent }, { name: run });
      const undone = [];
      for (const head of heads) {
        if (head.state === 'committing') await completeFacts(deps, head);
        const begun =
          head.state === 'undoing' || head.state === 'undone'
            ? head
            : await setHead(store, head, { state: 'undoing', undo: { by, at: deps.clock.now() } });
        undone.push(begun?.state === 'undoing' ? await undoUnit(deps, begun) : { agent: head.agent, undone: [], kept: [] });
      }
      return undone;
    },
  };
}

async function shadowOf(deps: UnitDeps, { tenant, pages }: ConsolidationUnit) {
  const { store, written } = shadowStore(deps.store);
  const layer = semanticLayer({ ...deps, store });
  let [added, reinforced] = [0, 0];
  for (const { id, facts, read } of pages) {
    const done = await layer.applyFacts(tenant, id, facts, read);
    added += done.added;
    reinforced += done.reinforced;
  }
  const search = (...asked: Parameters<typeof layer.search>) => layer.search(...asked);
  return { added, reinforced, search, written: written() };
}

async function commit(deps: UnitDeps, unit: ConsolidationUnit, staged: readonly ShadowRecord[], outbox: MemoryOutbox): Promise<void> {
  const { store, onUnsettled } = deps;
  let next: readonly ShadowRecord[] | null = staged;
  const head = await untilTaken(`unit ${unit.run} of ${unit.agent}`, async () => {
    const earlier = await loadHead(store, unit);
    if (earlier !== null) return earlier;
    const written = next ?? (await shadowOf(deps, unit)).written;
    // If another writer changed one of the facts, the unit is planned again from the stored facts.
    next = null;
    await store.write(unit.tenant, [...(await openingOf(store, unit, written)), ...written.map(changeOf)]);
    return loadHead(store, unit);
  });
  if (head.state === 'committing') await completeUnit(deps, head, outbox);
  if (staged.some(({ record }) => record.kind === 'fact' && knownFact(record).fact.unsettled)) await onUnsettled?.(unit.tenant);
}

/** Completes the missing steps of a unit whose record is stored. Each step can be repeated. */
async function completeUnit(deps: UnitDeps, head: UnitHead, outbox: MemoryOutbox): Promise<void> {
  const parts = await completeFacts(deps, head);
  for (const skill of parts.flatMap(({ skills }) => skills)) {
    const { scope, name, digest } = skill;
    await outbox.put(head.tenant, `skill.${contentDigest([scope, name, digest]).slice(0, 40)}`, { kind: 'skill', skill });
  }
  await setHead(deps.store, head, { state: 'applied' });
}

async function completeFacts({ store, semantic }: UnitDeps, head: UnitHead) {
  const parts = await loadParts(store, head);
  for (const { id, facts, read } of parts.flatMap(({ pages }) => pages)) await semantic.applyFacts(head.tenant, id, facts, read);
  return parts;
}
