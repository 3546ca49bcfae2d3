import { callGraph, type MoveDeps, moveSkills } from '../layers/skill-moves.js';
import { openedSkill, ownedSkills } from '../layers/skill-records.js';
import type { Skill } from '@etude/contracts/memory';
import { neededSkills, refusalOf, versionKey } from '@etude/domain/skills/life/call-graph';
import { activatedAt, IN_USE, keyOf, lastActivated, VERIFIER } from '@etude/domain/skills/life/skill-life';

const REASON_CHARS_MAX = 300;

/**
 * If a skill has several active versions, only the last activated stays. An interrupted move can leave two in a store without transactions.
 * An active skill that can't call what it needs would fail when used, so it is reported as a problem.
 *
 * @returns the number of checked skills
 */
export async function reconcileSkills(
  deps: MoveDeps,
  tenant: string,
  { repaired, problems }: { readonly repaired: string[]; readonly problems: string[] },
): Promise<number> {
  const active = new Map<string, number>();
  let checked = 0;
  for await (const page of deps.store.each({ tenant }, 'procedural', { kinds: ['skill'], where: { status: [...IN_USE] } })) {
    checked += page.length;
    for (const record of page)
      try {
        const { skill } = openedSkill(record);
        const name = versionKey({ ...skill, version: 0 });
        if (skill.status === 'active') active.set(name, (active.get(name) ?? 0) + 1);
        if (active.get(name) === 2) repaired.push(await leaveOneActive(deps, skill));
        const reason = await neededSkills(callGraph(deps.store), skill).catch(refusalOf);
        if (typeof reason === 'string') problems.push(`${textOf(skill)} is ${skill.status} and can't run: ${reason}`);
      } catch (error) {
        // Throws if the store as a whole doesn't answer.
        await deps.store.check();
        problems.push(`skill ${JSON.stringify(record.key)} of ${tenant} can't be read: ${String(error).slice(0, REASON_CHARS_MAX)}`);
      }
  }
  return checked;
}

async function leaveOneActive(deps: MoveDeps, { scope, name }: Skill): Promise<string> {
  const active = (await ownedSkills(deps.store, scope, { where: { name, status: 'active' } })).map(({ skill }) => skill);
  const stays = lastActivated(active)!;
  const decision = {
    to: 'deprecated',
    from: ['active'],
    by: VERIFIER,
    reason: `replaced by version ${stays.version}`,
    at: activatedAt(stays),
  } as const;
  await moveSkills(
    deps,
    active.filter(({ version }) => version !== stays.version).map((skill) => ({ ...decision, key: keyOf(skill) })),
  );
  return `of several versions of ${textOf(stays)} in use, only the last activated one stays active`;
}

const textOf = ({ name, version, scope }: Skill) => `skill ${name}@${version} of "${scope.agent}" in ${scope.tenant}`;
