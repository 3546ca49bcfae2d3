import { errorCode, type ErrorCode } from '@etude/contracts/errors';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { SkillKey, SkillOffer, SkillOwner } from '@etude/domain/ports/skill-registry';
import { requireScope } from '@etude/domain/retrieval/scopes';
import { mayCall } from '@etude/domain/skills/life/call-graph';
import { IN_USE, NOT_GONE } from '@etude/domain/skills/life/skill-life';
import { afterOffers } from '@etude/domain/skills/life/usage';
import type { RecordStore } from '../record-store.js';
import { everyRecord } from './every-record.js';
import { ownedRecords, versionsOfKeys } from './owned-skills.js';
import { skillUpdate } from './skill-records.js';
import { openedSkill } from './stored-skill.js';

const LAYER = 'procedural';
const PAGE = 64;

/** Skills of everybody may be called in any tenant. */
export async function dependentsOf(
  store: RecordStore,
  key: Pick<SkillKey, 'tenant' | 'agent' | 'user' | 'name'>,
  { all = false }: { readonly all?: boolean } = {},
): Promise<readonly Skill[]> {
  requireScope({ tenant: key.tenant, agent: key.agent });
  const tenants = key.tenant === GLOBAL_TENANT ? await store.tenants() : [key.tenant];
  const found = await Promise.all(tenants.map((tenant) => dependentsIn(store, tenant, key, all)));
  return found.flat();
}

async function dependentsIn(
  store: RecordStore,
  tenant: string,
  key: Pick<SkillKey, 'tenant' | 'agent' | 'user' | 'name'>,
  all: boolean,
): Promise<Skill[]> {
  const found: Skill[] = [];
  const filter = { kinds: ['skill'], where: { skill: key.name, ...(all ? {} : { status: [...IN_USE] }) } } as const;
  for await (const record of everyRecord(store, { tenant, agent: null }, LAYER, filter, { size: PAGE })) {
    const { skill } = openedSkill(record);
    if (mayCall(skill, key)) found.push(skill);
  }
  return found;
}

/** Versions are counted first, since the store does that without reading them. */
export async function countNames(store: RecordStore, owner: SkillOwner, countMax: number): Promise<number> {
  const { tenant, agent, user } = owner;
  const where = { status: NOT_GONE };
  const owners = { tenant, agent, ...(user === undefined ? {} : { user }) };
  if ((await store.count(owners, LAYER, { kinds: ['skill'], where })) === 0) return 0;
  const names = new Set<string>();
  for await (const { fields } of ownedRecords(store, owner, { where })) {
    if (typeof fields.name === 'string') names.add(fields.name);
    if (names.size >= countMax) break;
  }
  return names.size;
}

/** One write per tenant; what changed meanwhile, or has no room, is not counted. */
export async function countOffers(store: RecordStore, offers: readonly SkillOffer[]): Promise<void> {
  for (const [tenant, ofTenant] of Map.groupBy(offers, (offer) => offer.tenant)) {
    requireScope({ tenant, agent: null });
    const found = await versionsOfKeys(store, tenant, ofTenant);
    const byVersion = Map.groupBy(ofTenant.keys(), (at) => found[at]?.record.key);
    const changes = [...byVersion.values()].flatMap((places) => {
      const stored = found[places[0]!];
      const offered = places.map((at) => ofTenant[at]!);
      return stored === undefined ? [] : [skillUpdate(stored, afterOffers(stored.skill, offered))];
    });
    if (changes.length > 0) await store.write(tenant, changes).catch(unlessUnwritable);
  }
}

const UNWRITABLE: ReadonlySet<ErrorCode> = new Set(['MEMORY_FULL', 'MEMORY_UNAVAILABLE']);

/** Who is shown a skill, or loads it, reads: that goes on where nothing can be written. */
function unlessUnwritable(error: unknown): void {
  if (!UNWRITABLE.has(errorCode(error))) throw error;
}
