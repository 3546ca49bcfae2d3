import type { Episode, Fact, Skill } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { episodeOf, factOf, SCOPE } from '../../../test/memory-records.js';
import { dependencyOn } from '../proof/bundle-code.js';
import { provenSkill, Shelf } from '../../../test/hygiene-fixture.js';
import { restoreSkill, rollbackSkill } from './decisions.js';
import { pruneSkills, undoPrune } from './prune.js';
import { type LearnedRecords, RESTS_ON, revokeSource } from './revoke-source.js';
import { SAME_CODE_MARK } from './carried-over.js';
import { UNUSED } from './usage.js';
import { reasonsNotTrusted } from '../../trust/sources.js';

const POISON = 'documents/poison';

class Learned {
  readonly kept: Fact[];

  constructor(
    facts: readonly Fact[] = [],
    private readonly told: readonly Episode[] = [],
  ) {
    this.kept = [...facts];
  }

  /** These records, together with the skills of a shelf. */
  with(shelf: Shelf): LearnedRecords {
    const { told } = this;
    return {
      async *restingOn(tenant, names) {
        const isNamed = (restsOn: readonly string[]) => restsOn.some((name) => names.includes(name));
        for await (const skill of shelf.every({ tenant, agent: null })) if (isNamed(RESTS_ON.skill(skill))) yield skill;
        yield* told.filter((episode) => tenant === 'acme' && isNamed(RESTS_ON.episode(episode)));
      },
      reviseFacts: async (_tenant, names, change) => {
        for (const [at, fact] of this.kept.entries())
          if (fact.validTo === undefined && RESTS_ON.fact(fact).some((name) => names.includes(name))) this.kept[at] = change(fact) ?? fact;
      },
    };
  }
}

/** Revokes a source as Ann does at time 9 (ms since 1970). */
const revokeOn = (shelf: Shelf, over: Partial<Parameters<typeof revokeSource>[0]> = {}, learned = new Learned()) =>
  revokeSource(
    { tenant: 'acme', source: POISON, reason: '', by: 'ann', dryRun: false, at: 9, ...over },
    { procedural: shelf, learned: learned.with(shelf) },
  );
const revoke = (source: string, skills: readonly Skill[], learned = new Learned(), dryRun = false) => {
  const shelf = new Shelf(...skills);
  return revokeOn(shelf, { source, reason: 'forged', dryRun }, learned).then((revoked) => ({ ...revoked, shelf }));
};
const namesOf = ({ skills }: { skills: readonly Skill[] }) => skills.map(({ name }) => name);

describe('revokeSource', () => {
  it('withdraws skills that name the source, with the reason', async () => {
    const skills = [
      provenSkill('bad', { sources: [POISON] }),
      provenSkill('good'),
      provenSkill('waits', { sources: [POISON], status: 'pending_review' }),
      provenSkill('refused', { sources: [POISON], status: 'rejected' }),
    ];
    const { shelf, ...revoked } = await revoke(POISON, skills);
    expect(namesOf(revoked).toSorted()).toEqual(['bad', 'refused', 'waits']);
    expect(revoked.skills[0]).toMatchObject({ status: 'archived', statusReason: 'its source documents/poison was revoked: forged' });
    expect(shelf.statuses()).toEqual(['bad@1 archived', 'good@1 active', 'waits@1 archived', 'refused@1 archived']);
  });

  it('withdraws only the later versions and copies with its mark', async () => {
    const bad = provenSkill('bad', { sources: [POISON] });
    const mark = reasonsNotTrusted([POISON]);
    const skills = [
      bad,
      provenSkill('bad', { version: 2, code: 'def bad():\n    return 3', untrusted: mark, status: 'pending_review' }),
      provenSkill('copy', { code: bad.code.replaceAll('bad', 'copy'), untrusted: [SAME_CODE_MARK] }),
      provenSkill('copy', { version: 2, code: 'def copy():\n    return 7', untrusted: [SAME_CODE_MARK] }),
      provenSkill('vouched', { code: bad.code.replaceAll('bad', 'vouched') }),
      provenSkill('other', { code: 'def other():\n    return 9', untrusted: [SAME_CODE_MARK, ...reasonsNotTrusted(['documents/fine'])] }),
      provenSkill('task', { code: 'def task():\n    return 5', untrusted: reasonsNotTrusted(['untrustedTasks/t0192f0c8a1b2']) }),
    ];
    const { shelf } = await revoke(POISON, skills);
    expect(
      shelf
        .statuses()
        .filter((status) => status.endsWith('archived'))
        .toSorted(),
    ).toEqual(['bad@1 archived', 'bad@2 archived', 'copy@1 archived', 'copy@2 archived']);
    expect(namesOf(await revoke('tasks/t0192f0c8a1b2', skills))).toEqual(['task']);
  });

  it('withdraws all callers of a poisoned skill, callers first', async () => {
    const bad = provenSkill('bad', { sources: [POISON] });
    const middle = provenSkill('middle', { dependencies: [dependencyOn(bad)], scope: { ...SCOPE, agent: '@tenant' } });
    const top = provenSkill('top', { dependencies: [dependencyOn(middle)] });
    const revoked = await revoke(POISON, [bad, middle, top, provenSkill('other')]);
    expect(namesOf(revoked)).toEqual(['top', 'middle', 'bad']);
    expect(revoked.shelf.statuses()).toContain('other@1 active');
  });

  const marked = provenSkill('near', { sources: ['markedSkills/moor@1'] });
  const seenBy = (agent: string, user: string | null) => [
    provenSkill('bad', { sources: [POISON], scope: { ...SCOPE, agent, user } }),
    provenSkill('learnt', { sources: ['skills/bad@1'], scope: { ...SCOPE, user } }),
    provenSkill('shared', { sources: ['skills/learnt@1'], scope: { ...SCOPE, agent: '@tenant' } }),
  ];

  it.each<[string, string, readonly Skill[], readonly string[]]>([
    ['learned while a poisoned skill of the tenant was shown', POISON, seenBy('@tenant', null), ['bad', 'learnt', 'shared']],
    ['learned while a poisoned skill of a user was shown', POISON, seenBy('@user', 'ann'), ['bad', 'learnt', 'shared']],
    [
      'learned from the poisoned skill, not from another of its name',
      POISON,
      [
        provenSkill('bad', { sources: [POISON], scope: { ...SCOPE, user: 'ann' } }),
        provenSkill('of_bob', { sources: ['skills/bad@1'], scope: { ...SCOPE, user: 'bob' } }),
        provenSkill('of_nobody', { sources: ['skills/bad@1'] }),
        provenSkill('elsewhere', { sources: ['skills/bad@1'], scope: { ...SCOPE, agent: 'painter', user: 'ann' } }),
      ],
      ['bad'],
    ],
    [
      'learned while a revoked version was shown',
      'skills/moor@1',
      [provenSkill('moor'), marked, provenSkill('caller', { dependencies: [dependencyOn(marked)] }), provenSkill('clean')],
      ['caller', 'moor', 'near'],
    ],
    [
      'learned indirectly from an untrusted task',
      'tasks/tabcdefgh',
      [provenSkill('far', { sources: ['untrustedTasks/tabcdefgh', 'episodes/tgonegone-r1'] })],
      ['far'],
    ],
  ])('withdraws each skill %s', async (_what, source, skills, withdrawn) => {
    expect(namesOf(await revoke(source, skills)).toSorted()).toEqual(withdrawn);
  });

  it('withdraws a told fact and skills learned from it', async () => {
    const learned = new Learned([factOf({ id: 'f', text: 'Use eval.', source: 'told', episodes: [] }), factOf({ id: 'g' })]);
    const revoked = await revoke('facts/f', [provenSkill('near', { sources: ['facts/f'] }), provenSkill('other')], learned);
    expect([namesOf(revoked), revoked.facts]).toEqual([['near'], ['Use eval.']]);
    expect(learned.kept.map(({ validTo }) => validTo)).toEqual([9, undefined]);
  });

  it('follows a document through the episodes in which it was shown', async () => {
    const first = episodeOf({ id: 'taaaaaaaa-r1.episode', taskId: 'taaaaaaaa', touched: [POISON] });
    const second = episodeOf({ id: 'tbbbbbbbb-r1.episode', taskId: 'tbbbbbbbb', touched: ['episodes/taaaaaaaa-r1'] });
    const clean = episodeOf({ id: 'tcccccccc-r1.episode', taskId: 'tcccccccc' });
    const learned = new Learned([factOf({ id: 'f', text: 'Use eval.', episodes: [second.id] })], [clean, second, first]);
    const skills = [
      provenSkill('near', { sources: ['tasks/taaaaaaaa'] }),
      provenSkill('far', { sources: ['tbbbbbbbb-r1.episode'] }),
      provenSkill('clean', { sources: ['tasks/tcccccccc', 'tcccccccc-r1.episode'] }),
    ];
    const revoked = await revoke(POISON, skills, learned);
    expect(namesOf(revoked)).toEqual(['far', 'near']);
    expect(revoked.facts).toEqual(['Use eval.']);
  });

  it('finds skills of an episode by each of its names', async () => {
    const skills = [provenSkill('old', { sources: ['tabcdefgh-r1.episode'] }), provenSkill('own', { sources: ['tasks/tabcdefgh'] })];
    for (const source of ['episodes/tabcdefgh-r1.episode', 'episodes/tabcdefgh-r1', 'tasks/tabcdefgh'])
      expect(namesOf(await revoke(source, skills))).toEqual(['old', 'own']);
    expect(namesOf(await revoke('tasks/tabcdefg', skills))).toEqual([]);
  });

  it('withdraws facts without other support, and removes the source from the others', async () => {
    const alone = factOf({ id: 'alone', text: 'Ports start at 1.', episodes: ['tabcdefgh-r1.episode'] });
    const both = factOf({ id: 'both', text: 'Ports end.', episodes: ['tabcdefgh-r1.episode', 'tbbbbbbbb-r1.episode'], support: 2 });
    const told = factOf({ id: 'told', text: 'Somebody said so.', episodes: [] });
    const learned = new Learned([alone, both, told]);
    expect((await revoke('tasks/tabcdefgh', [], learned)).facts).toEqual(['Ports start at 1.']);
    expect(learned.kept).toMatchObject([{ validTo: 9 }, { episodes: ['tbbbbbbbb-r1.episode'], support: 1 }, told]);
    expect((await revoke('tasks/tbbbbbbbb', [], learned)).facts).toEqual(['Ports end.']);
  });

  it('withdraws facts that were made where a revoked source was read, whatever episodes they name', async () => {
    const facts = [factOf({ id: 'a', text: 'Read.', touched: ['conversations/c1'] }), factOf({ id: 'b' })];
    expect((await revoke('conversations/c1', [], new Learned(facts))).facts).toEqual(['Read.']);
  });

  it('withdraws the records of one user only', async () => {
    const eve = { ...SCOPE, user: 'eve' };
    const learned = new Learned([factOf({ id: 'f', text: 'Eve’s.', scope: eve, episodes: [] })], [episodeOf({ scope: eve })]);
    const skills = [
      provenSkill('hers', { scope: eve, sources: [] }),
      provenSkill('shared', { sources: ['tasks/tabcdefgh'] }),
      provenSkill('named', { sources: ['users/eve'] }),
      provenSkill('other', { scope: { ...SCOPE, user: 'eva' }, sources: ['users/eva'] }),
    ];
    const revoked = await revoke('users/eve', skills, learned);
    expect(namesOf(revoked)).toEqual(['hers', 'named', 'shared']);
    expect(revoked.facts).toEqual(['Eve’s.']);
  });

  it('lists the same in a dry run and changes nothing', async () => {
    const skills = [provenSkill('bad', { sources: [POISON] })];
    const learned = new Learned([factOf({ episodes: ['x1'] })]);
    const dry = await revoke(POISON, skills, learned, true);
    expect(namesOf(dry)).toEqual(['bad']);
    expect(dry.shelf.moves).toEqual([]);
    expect((await revoke('episodes/x1', [], learned, true)).facts).toEqual(['Input ends with an empty line.']);
    expect(learned.kept[0]?.validTo).toBeUndefined();
  });

  it('answers a repeated call equally and moves nothing twice', async () => {
    const bad = provenSkill('bad', { sources: [POISON] });
    const { proof: _proof, ...gone } = provenSkill('gone', { sources: [POISON], status: 'archived' });
    const { shelf, skills } = await revoke(POISON, [bad, gone, provenSkill('caller', { dependencies: [dependencyOn(bad)] })]);
    expect(namesOf(await revokeOn(shelf, { by: 'ben', at: 10 }))).toEqual(namesOf({ skills }));
    expect(shelf.moves).toHaveLength(2);
  });

  it('withdraws copies for all tenants only on request, and never by user', async () => {
    const copy = provenSkill('copy', { sources: [POISON, 'users/eve'], scope: { tenant: '@global', agent: '@tenant', user: null } });
    const own = provenSkill('own', { sources: [POISON], dependencies: [dependencyOn(copy)] });
    const shelf = new Shelf(own, copy);
    expect(namesOf(await revokeOn(shelf, { source: 'users/eve', global: true }))).toEqual([]);
    expect(namesOf(await revokeOn(shelf))).toEqual(['own']);
    expect(namesOf(await revokeOn(shelf, { global: true })).toSorted()).toEqual(['copy', 'own']);
    expect(shelf.statuses()).toEqual(['own@1 archived', 'copy@1 archived']);
  });

  it('removes the proof, so a restored skill is verified again', async () => {
    const { shelf } = await revoke(POISON, [
      provenSkill('bad', { sources: [POISON] }),
      provenSkill('old', { sources: [POISON], status: 'deprecated' }),
    ]);
    const decision = { by: 'ann', reason: '', at: 10 };
    for (const name of ['bad', 'old']) {
      const revoked = (await shelf.get(SCOPE, name))!;
      expect(revoked).not.toHaveProperty('proof');
      expect(await restoreSkill(shelf, [revoked], decision)).toMatchObject([{ status: 'deprecated' }]);
      const back = rollbackSkill(shelf, (await shelf.get(SCOPE, name))!, { ...decision, at: 11, toVersion: 1 });
      await expect(back).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
    }
  });

  it('removes the proof of a pruned skill, which no undo restores', async () => {
    const shelf = new Shelf(provenSkill('bad', { sources: [POISON], successRate: 0.1, usage: { ...UNUSED, used: 100 } }));
    const pruning = { tenant: 'acme', agent: null, policy: { failingRateMax: 0.5, failingUsesMin: 10 }, pruneId: 'p1', by: 'night' };
    expect((await pruneSkills({ ...pruning, dryRun: false, at: 8 }, shelf)).pruned).toHaveLength(1);
    for (const at of [9, 10]) {
      const { skills } = await revokeOn(shelf, { at });
      expect(skills).toMatchObject([{ name: 'bad', status: 'archived', statusReason: 'its source documents/poison was revoked' }]);
      expect(skills[0]).not.toHaveProperty('proof');
    }
    expect(await undoPrune({ tenant: 'acme', pruneId: 'p1', by: 'ann', at: 11 }, shelf)).toEqual({ skills: [], left: [] });
    expect([shelf.statuses(), shelf.moves.length]).toEqual([['bad@1 archived'], 2]);
  });

  it.each(['', 'poison', 'markedSkills/bad@1', 'documents/', 'documents/a b', 'documents/a\n', 'files/x'])('refuses %j', async (source) => {
    await expect(revoke(source, [])).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});
