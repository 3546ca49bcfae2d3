import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { requireScope, type SkillMove } from '@etude/domain/ports/memory';
import { type CallGraph, requireCallable } from '@etude/domain/skills/life/call-graph';
import { movedSkill, noSuchSkill, requireOnlyActive } from '@etude/domain/skills/life/skill-life';
import type { MemoryRecord, RecordStore, StoredRecord } from '../record-store.js';
import { bodyOf, type LayerDeps, OwnerTurns, parseBody, putRecord, rewriteOf, untilTaken } from './records.js';
import { dependentsOf, ownedSkills, skillUpdate, type StoredSkill, versionsOfKeys } from './skill-records.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { markApplied } from './repeats.js';

export type MoveDeps = Pick<LayerDeps, 'store' | 'clock' | 'proofChecker' | 'embedder'>;

/**
 * Applies all moves (changes of a skill's status) in one write. If one move is refused, nothing is written. Qdrant has no transactions, so
 * it applies moves in order; after a crash a repeat continues with the rest. Moves of a tenant take turns (`inTurn`).
 */
export async function moveSkills(deps: MoveDeps, moves: readonly SkillMove[]): Promise<readonly Skill[]> {
  const [first] = moves;
  if (first === undefined) return [];
  const tenant = tenantOf(moves);
  return inTurn(deps, tenant, () => untilTaken(`skill ${first.key.name}`, () => moveOnce(deps, moves, tenant)));
}

/** Returns null if a version changed meanwhile, for example because a use was counted. */
async function moveOnce(deps: MoveDeps, moves: readonly SkillMove[], tenant: string): Promise<readonly Skill[] | null> {
  const { store, embedder, proofChecker = null } = deps;
  const keys = moves.map(({ key }) => key);
  const found = await versionsOfKeys(store, tenant, keys);
  const known: StoredSkill[] = [];
  const moved = new Map<string, Skill>();
  for (const [i, move] of moves.entries()) {
    const one = found[i];
    if (one === undefined) throw noSuchSkill(move.key);
    known.push(one);
    moved.set(one.record.key, movedSkill(moved.get(one.record.key) ?? one.skill, move, proofChecker));
  }
  const afterOf = ({ record }: StoredSkill) => moved.get(record.key)!;
  const changed = known.map((one, i) => ({ before: one.skill, after: afterOf(one), move: moves[i]! }));
  for (const { before, after } of changed.filter((one) => one.before.status !== 'active' && one.after.status === 'active')) {
    const versions = await ownedSkills(store, before.scope, { where: { name: before.name } });
    const then = versions.map((version) => moved.get(version.record.key) ?? version.skill);
    requireOnlyActive(after, then);
  }
  await requireCallable(callGraph(store), changed);
  const rewritten = [...new Set(known)].filter((one) => afterOf(one) !== one.skill);
  const changes = await Promise.all(rewritten.map((one) => rewriteOf(embedder, one.record, skillUpdate(one, afterOf(one)).record)));
  const done = changes.length === 0 ? [] : await store.write(tenant, changes);
  return done.includes(false) ? null : known.map(afterOf);
}

export function callGraph(store: RecordStore): CallGraph {
  return {
    versions: async (owner, name) => (await ownedSkills(store, owner, { where: { name } })).map(({ skill }) => skill),
    dependents: (key, options) => dependentsOf(store, key, options),
  };
}

/** @throws EtudeError TENANT_MISSING, INVALID_ARGUMENT for moves of several tenants */
function tenantOf(moves: readonly SkillMove[]): string {
  const [tenant = '', ...others] = new Set(moves.map(({ key }) => key?.tenant));
  requireScope({ tenant, agent: null });
  if (others.length === 0) return tenant;
  throw new EtudeError('INVALID_ARGUMENT', 'one call may only move skills of one tenant; send a call for each tenant');
}

const LAYER = 'procedural';
/** A turn ends after this time, because its writer must be dead by then. */
const TURN_MS = 10_000;
const WAIT_MS_MAX = 50;
const WAITS_MS_MAX = 60_000;
const IN_PROCESS = new OwnerTurns();
type TurnDeps = Pick<LayerDeps, 'store' | 'clock'>;

/**
 * Runs `work`, which reads a tenant's skills and changes them, while no other process changes them. Thus a skill has one active version, no
 * skill is retired while another begins to call it, and no owner exceeds its limit of names. The turn is a record with an end time. If its
 * writer dies, the next writer waits until that time.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE if no turn is free for 60 s
 */
export async function inTurn<T>(deps: TurnDeps, tenant: string, work: () => Promise<T>): Promise<T> {
  return IN_PROCESS.take(ownerOf(tenant), async () => {
    const revision = await takeTurn(deps, tenant);
    try {
      return await work();
    } finally {
      await deps.store.write(tenant, [{ do: 'update', record: turnRecord(tenant, deps.clock.now(), 0), revision }]);
    }
  });
}

/** @returns the revision of the turn's record */
async function takeTurn({ store, clock }: TurnDeps, tenant: string): Promise<number> {
  const deadline = performance.now() + WAITS_MS_MAX;
  for (; performance.now() < deadline; await sleep(Math.random() * WAIT_MS_MAX)) {
    const record = turnRecord(tenant, clock.now(), clock.now() + TURN_MS);
    const [known] = await store.load({ tenant, agent: null }, LAYER, 'applied', [record.key]);
    if (known !== undefined && untilIn(known) > clock.now()) continue;
    if (await putRecord(store, record, known)) return (known?.revision ?? 0) + 1;
  }
  throw new EtudeError(
    'MEMORY_UNAVAILABLE',
    `other processes kept changing skills of this tenant for ${WAITS_MS_MAX / 1_000} s; try again`,
  );
}

const ownerOf = (tenant: string) => ({ tenant, agent: '@tenant', user: null });

function turnRecord(tenant: string, at: number, until: number): MemoryRecord {
  const { record } = markApplied(LAYER, ownerOf(tenant), 'skills turn', at);
  return { ...record, body: bodyOf({ until }) };
}

const untilIn = (record: StoredRecord): number => parseBody<{ until?: number }>(record).value.until ?? 0;
