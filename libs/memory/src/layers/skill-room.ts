import { EtudeError } from '@etude/contracts/errors';
import { requireScope } from '@etude/domain/retrieval/scopes';
import type { SkillOwner } from '@etude/domain/ports/skill-registry';
import { requireRoom } from '@etude/domain/skills/life/register-skill';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MemoryRecord, StoredRecord } from '../record-store.js';
import { bodyOf, type LayerDeps, parseBody } from './records.js';
import { markApplied } from './repeats.js';
import { countNames } from './skill-records.js';

const LAYER = 'procedural';
/** A turn that is older was lost with its writer. */
const TURN_MS = 10_000;
const WAIT_MS_MAX = 50;
const WAITS_MS_MAX = 60_000;
type RoomDeps = Pick<LayerDeps, 'store' | 'clock'>;

/** A name that is about to take up room. */
export interface NewName extends Required<SkillOwner> {
  readonly name: string;
}

/**
 * Does `work`, which adds a name to an owner's skills, while no other process adds one: so an owner never has more than `namesMax`.
 * The turn is a record of the owner that says until when it is taken. A writer that dies with it holds up the next one until then.
 *
 * @param namesMax 0: any number
 * @throws EtudeError FAILED_PRECONDITION where there is no room; MEMORY_UNAVAILABLE where the turn is never free
 */
export async function withRoom<T>(deps: RoomDeps, next: NewName, namesMax: number, work: () => Promise<T>): Promise<T> {
  if (namesMax === 0) return work();
  const turn = await takeTurn(deps, next, namesMax);
  try {
    requireRoom(next, await countNames(deps.store, next, namesMax, next.name), namesMax);
    return await work();
  } finally {
    await deps.store.write(next.tenant, [{ do: 'update', record: turnRecord(next, deps.clock.now(), 0), revision: turn.revision + 1 }]);
  }
}

/** As it was before it was taken. */
async function takeTurn(deps: RoomDeps, next: NewName, namesMax: number): Promise<StoredRecord> {
  const { store, clock } = deps;
  const whole = requireScope({ tenant: next.tenant, agent: null });
  const deadline = performance.now() + WAITS_MS_MAX;
  for (; performance.now() < deadline; await sleep(Math.random() * WAIT_MS_MAX)) {
    const record = turnRecord(next, clock.now(), clock.now() + TURN_MS);
    const [known] = await store.load(whole, LAYER, 'applied', [record.key]);
    if (known !== undefined && untilIn(known) > clock.now()) {
      requireRoom(next, await countNames(deps.store, next, namesMax, next.name), namesMax);
      continue;
    }
    const change = known === undefined ? { do: 'insert' as const, indexed: [] } : { do: 'update' as const, revision: known.revision };
    const [isTaken] = await store.write(next.tenant, [{ ...change, record }]);
    if (isTaken) return known ?? { ...record, revision: 0 };
  }
  throw new EtudeError('MEMORY_UNAVAILABLE', `others kept adding skills of "${next.agent}" for ${WAITS_MS_MAX / 1_000} s; try again`);
}

function turnRecord({ tenant, agent, user }: NewName, at: number, until: number): MemoryRecord {
  const { record } = markApplied(LAYER, { tenant, agent, user }, `turn ${agent}${user === null ? '' : ` ${user}`}`, at);
  return { ...record, body: bodyOf({ until }) };
}

const untilIn = (record: StoredRecord): number => parseBody<{ until?: number }>(record).value.until ?? 0;
