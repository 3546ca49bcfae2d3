import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillKey, SkillOwner } from '@etude/domain/ports/skill-registry';
import { requireScope } from '@etude/domain/retrieval/scopes';
import { afterOffer } from '@etude/domain/skills/life/skill-usage';
import type { Change, RecordStore } from '../record-store.js';
import { everyRecord } from './every-record.js';
import { skillKey, skillRecord } from './skill-records.js';
import { openedSkill } from './stored-skill.js';

const LAYER = 'procedural';
const PAGE = 64;
/** Of skills that take up room. */
export const KEPT: readonly SkillStatus[] = ['candidate', 'verified', 'pending_review', 'active', 'deprecated'];
/** Of skills that a change of what they call matters to. */
const CALLING: readonly SkillStatus[] = ['active', 'pending_review'];

/** Skills of everybody may be called in any tenant. */
export async function dependentsOf(
  store: RecordStore,
  key: Pick<SkillKey, 'tenant' | 'agent' | 'name'>,
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
  key: Pick<SkillKey, 'tenant' | 'agent' | 'name'>,
  all: boolean,
): Promise<Skill[]> {
  const found: Skill[] = [];
  const filter = { kinds: ['skill'], where: { skill: key.name, ...(all ? {} : { status: CALLING }) } } as const;
  for await (const record of everyRecord(store, { tenant, agent: null }, LAYER, filter, { size: PAGE })) {
    const { skill } = openedSkill(record);
    const calls = (skill.dependencies ?? []).some(
      (needed) => needed.name === key.name && needed.agent === key.agent && needed.tenant === key.tenant,
    );
    if (calls) found.push(skill);
  }
  return found;
}

/** Versions are counted first, since the store does that without reading them. */
export async function countNames(store: RecordStore, owner: SkillOwner, countMax: number): Promise<number> {
  const { tenant, agent } = owner;
  const filter = { kinds: ['skill'], where: { status: KEPT } } as const;
  if ((await store.count({ tenant, agent }, LAYER, filter)) === 0) return 0;
  const names = new Set<string>();
  for await (const { fields } of everyRecord(store, { tenant, agent }, LAYER, filter, { size: PAGE })) {
    if (typeof fields.name === 'string') names.add(fields.name);
    if (names.size >= countMax) break;
  }
  return names.size;
}

/** One write per tenant; what changed meanwhile is not counted. */
export async function countOffers(store: RecordStore, keys: ReadonlyArray<Omit<SkillKey, 'digest'>>): Promise<void> {
  for (const [tenant, ofTenant] of Map.groupBy(keys, (key) => key.tenant)) {
    requireScope({ tenant, agent: null });
    const names = [...new Set(ofTenant.map((key) => skillKey(key)))];
    const records = await store.load({ tenant, agent: null }, LAYER, 'skill', names);
    const changes = records.map((stored): Change => {
      const { skill, taken } = openedSkill(stored);
      return { do: 'update', record: skillRecord(afterOffer(skill), taken), revision: stored.revision };
    });
    if (changes.length > 0) await store.write(tenant, changes);
  }
}
