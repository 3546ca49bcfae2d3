import { EtudeError } from '@etude/contracts/errors';
import { requireScope } from '@etude/domain/retrieval/scopes';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MemoryRecord, StoredRecord } from '../record-store.js';
import { bodyOf, type LayerDeps, OwnerTurns, parseBody } from './records.js';
import { markApplied } from './repeats.js';

const LAYER = 'procedural';
/** A turn ends after this time, since its writer must have died. */
const TURN_MS = 10_000;
const WAIT_MS_MAX = 50;
const WAITS_MS_MAX = 60_000;
const IN_PROCESS = new OwnerTurns();
type TurnDeps = Pick<LayerDeps, 'store' | 'clock'>;

/**
 * Runs `work`, which decides on a tenant's skills from what it reads, while no other process does so. So only one version is active, no
 * skill is retired while another begins to call it, and no owner exceeds its limit of names. The turn is a record with an end time. If its
 * writer dies, the next one waits until then.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE if no turn is free for 60 s
 */
export async function inTurn<T>(deps: TurnDeps, tenant: string, work: () => Promise<T>): Promise<T> {
  requireScope({ tenant, agent: null });
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
    const change = known === undefined ? { do: 'insert' as const, indexed: [] } : { do: 'update' as const, revision: known.revision };
    const [isTaken] = await store.write(tenant, [{ ...change, record }]);
    if (isTaken) return (known?.revision ?? 0) + 1;
  }
  throw new EtudeError('MEMORY_UNAVAILABLE', `others kept changing skills for ${WAITS_MS_MAX / 1_000} s; try again`);
}

const ownerOf = (tenant: string) => ({ tenant, agent: '@tenant', user: null });

function turnRecord(tenant: string, at: number, until: number): MemoryRecord {
  const { record } = markApplied(LAYER, ownerOf(tenant), 'skills turn', at);
  return { ...record, body: bodyOf({ until }) };
}

const untilIn = (record: StoredRecord): number => parseBody<{ until?: number }>(record).value.until ?? 0;
