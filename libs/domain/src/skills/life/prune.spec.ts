import type { Skill } from '@etude/contracts/memory';
import type { SkillUsage } from '@etude/contracts/skill-proof';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NEW_YEAR, SCOPE } from '../../../test/memory-records.js';
import { calledVersions, versionKey } from './call-graph.js';
import { archiveSkill, restoreSkill } from './decisions.js';
import { type PrunePolicy, pruneSkills, undoPrune } from './prune.js';
import { UNUSED as NEVER_USED } from './usage.js';
import { dependencyOn } from '../proof/bundle-code.js';
import { DAY_MS, provenSkill, Shelf } from '../../../test/hygiene-fixture.js';

const AT = NEW_YEAR + 100 * DAY_MS;
const used = (over: Partial<SkillUsage>): SkillUsage => ({ ...NEVER_USED, ...over });
const UNUSED: PrunePolicy = { unusedDays: 30 };
const plan = (skills: readonly Skill[], policy: PrunePolicy = UNUSED, agent: string | null = null) =>
  pruneSkills({ tenant: 'acme', agent, policy, pruneId: 'p1', by: 'ann', dryRun: true, at: AT }, new Shelf(...skills));
const names = (skills: readonly Skill[], policy: PrunePolicy, agent: string | null = null) =>
  plan(skills, policy, agent).then(({ pruned }) => pruned.map(({ skill, reason }) => `${skill.name}: ${reason}`));
const prune = (shelf: Shelf, over: object = {}) =>
  pruneSkills({ tenant: 'acme', agent: null, policy: UNUSED, pruneId: 'p1', by: 'ann', dryRun: false, at: AT, ...over }, shelf).then(
    ({ pruned }) => pruned,
  );
const undone = (shelf: Shelf, pruneId = 'p1') => undoPrune({ tenant: 'acme', pruneId, by: 'ann', at: AT + 3 }, shelf);
const undo = (...asked: Parameters<typeof undone>) => undone(...asked).then(({ skills }) => skills);

describe('a plan of pruning', () => {
  const idle = provenSkill('idle');
  const busy = provenSkill('busy', { usage: used({ used: 3, lastUsedAt: AT - 5 * DAY_MS }) });
  const late = provenSkill('late', { history: [{ at: AT - DAY_MS, by: 'ann', from: 'pending_review', to: 'active', reason: '' }] });
  const failing = provenSkill('failing', { successRate: 0.2, usage: used({ used: 10, lastUsedAt: AT }) });
  const unlucky = provenSkill('unlucky', { successRate: 0.2, usage: used({ used: 1, lastUsedAt: AT }) });
  const superseded = [{ at: AT - 40 * DAY_MS, by: 'ann', from: 'active', to: 'deprecated', reason: '' }] as const;
  const old = provenSkill('old', { status: 'deprecated', history: [...superseded] });

  it.each<[string, readonly Skill[], PrunePolicy, readonly string[]]>([
    ['unused skills', [idle, busy], UNUSED, ['idle: not used for 100 days']],
    ['unused skills by their last use', [idle, busy], { unusedDays: 5 }, ['busy: not used for 5 days', 'idle: not used for 100 days']],
    ['no recently activated skill', [late], UNUSED, []],
    [
      'failing skills with enough uses',
      [failing, unlucky],
      { failingRateMax: 0.5, failingUsesMin: 5 },
      ['failing: success rate 0.20 after 10 uses'],
    ],
    ['versions deprecated long ago', [old], { supersededDays: 30 }, ['old: deprecated for 40 days']],
    ['no version deprecated later', [old], { supersededDays: 41 }, []],
    ['no deprecated version without a rule for them', [old], UNUSED, []],
  ])('names %s', async (_what, skills, policy, expected) => {
    expect(await names(skills, policy)).toEqual(expected);
  });

  it('names the callers of a kept skill', async () => {
    const leaf = provenSkill('leaf');
    const middle = provenSkill('middle', { status: 'deprecated', dependencies: [dependencyOn(leaf)] });
    const top = provenSkill('top', { dependencies: [dependencyOn(middle)], usage: used({ used: 1, lastUsedAt: AT }) });
    const beside = provenSkill('beside', { dependencies: [dependencyOn(leaf)] });
    const { kept } = await plan([leaf, middle, top, beside]);
    expect(kept.map(({ skill, reason, calledBy }) => [skill.name, reason, calledBy.map(({ name }) => name).toSorted()])).toEqual([
      ['leaf', 'not used for 100 days', ['middle']],
    ]);
  });

  it('keeps a skill with a caller of another agent', async () => {
    const shared = provenSkill('shared', { scope: { ...SCOPE, agent: '@tenant' } });
    const caller = provenSkill('caller', { dependencies: [dependencyOn(shared)] });
    expect(await names([shared, caller], UNUSED, '@tenant')).toEqual([]);
    expect(await names([shared], UNUSED, '@tenant')).toEqual(['shared: not used for 100 days']);
  });

  it('keeps the callees of every kept skill', async () => {
    const build = fc.array(fc.record({ isIdle: fc.boolean(), calls: fc.array(fc.nat(20), { maxLength: 4 }) }), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(build, async (shapes) => {
        const skills: Skill[] = [];
        for (const [at, { isIdle, calls: called }] of shapes.entries()) {
          const dependencies = called.filter((index) => index < at).flatMap((index) => skills.slice(index, index + 1).map(dependencyOn));
          skills.push(provenSkill(`s${at}`, { dependencies, usage: used(isIdle ? {} : { used: 1, lastUsedAt: AT }) }));
        }
        const pruned = new Set((await plan(skills)).pruned.map(({ skill }) => versionKey(skill)));
        const stay = skills.filter((skill) => !pruned.has(versionKey(skill)));
        expect(stay.flatMap(calledVersions).filter((key) => pruned.has(key))).toEqual([]);
      }),
    );
  });
});

describe('undoPrune', () => {
  it('restores exactly the skills of one pruning', async () => {
    const history = [{ at: NEW_YEAR, by: 'ann', from: 'active' as const, to: 'deprecated' as const, reason: '' }];
    const shelf = new Shelf(
      provenSkill('idle'),
      provenSkill('old', { status: 'deprecated', history }),
      provenSkill('gone', { status: 'archived' }),
    );
    await prune(shelf, { policy: { unusedDays: 30, supersededDays: 30 } });
    expect(await undo(shelf, 'p2')).toEqual([]);
    expect((await undo(shelf)).map(({ name, status }) => `${name} ${status}`)).toEqual(['old deprecated', 'idle active']);
    expect(shelf.statuses()).toEqual(['idle@1 active', 'old@1 deprecated', 'gone@1 archived']);
  });

  it('leaves a skill that somebody moved since', async () => {
    const shelf = new Shelf(provenSkill('idle'), provenSkill('other'));
    const pruned = await prune(shelf);
    const idle = pruned.map(({ skill }) => skill).find(({ name }) => name === 'idle')!;
    const key = { ...idle.scope, name: 'idle', version: 1, digest: idle.digest };
    await shelf.procedural.move([{ key, to: 'active', by: 'ann', reason: 'needed', at: AT + 1 }]);
    await shelf.procedural.move([{ key, to: 'archived', by: 'ann', reason: 'not needed', at: AT + 2 }]);
    expect((await undo(shelf)).map(({ name }) => name)).toEqual(['other']);
  });

  it('leaves callers of a skill archived since, and restores the others', async () => {
    const base = provenSkill('base', { usage: used({ used: 1, lastUsedAt: AT }) });
    const between = provenSkill('between', { status: 'deprecated', dependencies: [dependencyOn(base)] });
    const caller = provenSkill('caller', { dependencies: [dependencyOn(base)] });
    const callers = [
      caller,
      provenSkill('far', { dependencies: [dependencyOn(between)] }),
      provenSkill('top', { dependencies: [dependencyOn(caller)] }),
    ];
    const shelf = new Shelf(base, between, ...callers, provenSkill('other'));
    await prune(shelf);
    const decision = { by: 'rev', reason: 'harmful', at: AT + 1 };
    const archived = await archiveSkill(shelf, [base], decision);
    const namesBack = async () => (await undo(shelf)).map(({ name }) => name);
    expect([await namesBack(), await namesBack()]).toEqual([['other'], ['other']]);
    const { left } = await undone(shelf);
    expect(left.map(({ skill: { name }, reason }) => `${name}: ${reason}`).toSorted()).toEqual([
      expect.stringMatching(/^caller: .*base@1, which is archived/),
      expect.stringMatching(/^far: .*base@1, which is archived/),
      expect.stringMatching(/^top: .*caller@1, which is archived/),
    ]);
    await restoreSkill(shelf, archived, decision);
    expect((await namesBack()).toSorted()).toEqual(['caller', 'far', 'other', 'top']);
  });
});
