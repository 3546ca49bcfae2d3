import type { Episode, Fact, Scope, Skill, Transition } from '@etude/contracts/memory';
import { factId } from '@etude/domain/facts/fact-id';
import type { Embedder } from '@etude/domain/ports/embedder';
import { reinforce } from '@etude/domain/retrieval/reinforce';
import type { MemoryRecord, RecordStore } from '../record-store.js';
import type { Version1Record } from '../sqlite/version-1.js';
import { markApplied } from './applied-marker.js';
import { noteRecords } from './episode-notes.js';
import { episodeRecord, transitionRecord } from './episodic-records.js';
import { insertsOf } from './record-inserts.js';
import { factRecord } from './semantic-records.js';
import { skillRecord } from './skill-records.js';

const BATCH = 64;
/** The first layout did not note whose a write was. */
const CARRIED_OVER = 'carried-over';

/** Writes what a file of the first layout holds as records of the layers, with new vectors. Again from the start, it changes nothing. */
export async function carryVersion1(old: Iterable<Version1Record>, store: RecordStore, embedder: Embedder): Promise<void> {
  for (const batch of batchesOf(recordsOf(old)))
    for (const [tenant, records] of Map.groupBy(batch, ({ scope }) => scope.tenant))
      await store.write(tenant, await insertsOf(embedder, records));
}

/** Facts come last, since two of them may be one by now. */
function* recordsOf(all: Iterable<Version1Record>): Generator<MemoryRecord> {
  const facts = new Map<string, Fact>();
  for (const old of all) {
    if (old.kind === 'applied') yield* notesOf(old);
    else if (old.kind === 'fact') addFact(facts, JSON.parse(old.json) as Fact);
    else yield* recordsIn(old.kind, JSON.parse(old.json));
  }
  for (const fact of facts.values()) yield factRecord(fact, []);
}

function recordsIn(kind: 'transition' | 'episode' | 'skill', value: unknown): readonly MemoryRecord[] {
  if (kind === 'transition') return [transitionRecord(value as Transition)];
  if (kind === 'skill') return [skillRecord(value as Skill, [])];
  return [...noteRecords(value as Episode), episodeRecord(value as Episode)];
}

/** Facts are named by their owner and words now, and words that were two may count as the same. */
function addFact(facts: Map<string, Fact>, told: Fact): void {
  const fact = { ...told, id: factId(told.scope, told.text) };
  const known = facts.get(fact.id);
  facts.set(fact.id, known === undefined ? fact : reinforce(known, fact));
}

/** A write of the outbox may have been for either of the two layers. */
function notesOf({ what, tenant, id }: Extract<Version1Record, { kind: 'applied' }>): readonly MemoryRecord[] {
  const scope: Scope = { tenant, agent: CARRIED_OVER, user: null };
  const layers = { write: ['episodic', 'procedural'], use: ['procedural'], facts: ['semantic'] } as const;
  return layers[what].map((layer) => markApplied(layer, scope, id, 0).record);
}

function* batchesOf(records: Iterable<MemoryRecord>): Generator<readonly MemoryRecord[]> {
  let batch: MemoryRecord[] = [];
  for (const record of records) {
    batch.push(record);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}
