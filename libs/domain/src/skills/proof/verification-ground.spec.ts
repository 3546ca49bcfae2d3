import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { keyOf } from '../life/skill-life.js';
import { skillOf } from '../../../test/bundle-fixture.js';
import { admissionDeps } from '../../../test/admission-fixture.js';
import { admitSkill } from './admit-skill.js';
import { gatherGround } from './verification-ground.js';
import { rollbackSkill } from '../life/decisions.js';

const signal = new AbortController().signal;
const test = (arg: number, expected: number) => ({ kind: 'call' as const, args: [arg], kwargs: {}, expected, tolerance: 0 });

/** Versions of one skill, one after the other. */
function line() {
  const procedural = new FakeProceduralMemory();
  const deps = admissionDeps(procedural, {}, []);
  const next = async (body: string, ...tests: ReturnType<typeof test>[]): Promise<Skill> => {
    const stored = await procedural.store(skillOf('step', `def step(n):\n    return ${body}`, { tests, status: 'candidate' }));
    return admitSkill(keyOf(stored), deps, signal);
  };
  const versions = () => procedural.versions(skillOf('step', '').scope, 'step');
  const archive = async (version: number, reason: string) => {
    const meant = (await versions()).filter((one) => one.version === version);
    await procedural.move(meant.map((skill) => ({ key: keyOf(skill), to: 'archived', by: 'ann', reason, at: 9 })));
  };
  return { procedural, next, archive };
}

const first = ['n + 1', test(1, 2), test(7, 8)] as const;
const second = ['1 + n', test(2, 3), test(3, 4)] as const;
/** Passes the tests of the second version alone. */
const bad = ['n + 1 if n < 7 else 0', test(4, 5), test(5, 6)] as const;

describe('a new version', () => {
  it('passes the tests of all versions before it', async () => {
    const { next } = line();
    await next(...first);
    expect(await next(...second)).toMatchObject({ status: 'active', proof: { kept: [{ version: 1 }] } });
    expect(await next(...bad)).toMatchObject({
      status: 'rejected',
      statusReason: 'the tests of version 1, which version 2 had to pass as well, fail: test 2 of 2: wrong answer',
    });
    const fourth = await next('n - -1', test(4, 5), test(5, 6));
    expect(fourth).toMatchObject({ status: 'active', proof: { kept: [{ version: 2 }, { version: 1 }] } });
    expect(fourth.evidence).toContain('the tests of version 1, which version 2 had to pass as well, pass');
  });

  it('names an earlier version once for tests that are in no later one', async () => {
    const { next } = line();
    await next(...first);
    await next(...second);
    const third = await next('n - -1', test(1, 2), test(7, 8));
    expect(third.proof?.kept).toMatchObject([{ version: 2 }]);
    expect((await next('-(-n - 1)', test(9, 10), test(8, 9))).proof?.kept).toMatchObject([{ version: 3 }, { version: 2 }]);
  });

  it('is held to nothing that came after the version that was rolled back to', async () => {
    const { next, procedural } = line();
    await next(...first);
    const odd = await next('n + 1 if n != 50 else 0', test(1, 2), test(50, 0));
    await rollbackSkill(procedural, odd, { by: 'ann', reason: 'odd', at: 5 });
    expect(await next('1 + n', test(50, 51), test(2, 3))).toMatchObject({ status: 'active', proof: { kept: [{ version: 1 }] } });
  });

  it('is held to nothing that a reviewer archived, and to what was pruned', async () => {
    const pruned = line();
    await pruned.next(...first);
    await pruned.next(...second);
    await pruned.archive(1, 'pruned (p1): deprecated for 90 days');
    expect(await pruned.next(...bad)).toMatchObject({ status: 'rejected' });
    const decided = line();
    await decided.next(...first);
    await decided.next(...second);
    await decided.archive(1, 'it was wrong beyond six');
    expect(await decided.next(...bad)).toMatchObject({ status: 'active' });
  });
});

describe('a skill that reads much the same', () => {
  const inner = skillOf('inner', 'def inner(n):\n    return n');
  const other = skillOf('other', 'from skills import inner\ndef other(n):\n    return inner(n)', { needs: [inner] });
  const ground = (versions: () => Promise<Skill[]>) => {
    const hit = { skill: other, similarity: 0.9, score: 0.9 };
    const procedural = Object.assign(new FakeProceduralMemory().keep(other), {
      search: async ({ tenant }: { tenant: string }) => (tenant === 'acme' ? [hit] : []),
    });
    const own = procedural.versions.bind(procedural);
    Object.assign(procedural, { versions: async (...of: Parameters<typeof own>) => (of[1] === 'inner' ? versions() : own(...of)) });
    return gatherGround(skillOf('step', 'def step(n):\n    return n'), procedural);
  };

  it('is compared with all that it calls, or not at all', async () => {
    expect((await ground(async () => [inner])).similar).toMatchObject([{ skill: { name: 'other' }, needed: [{ name: 'inner' }] }]);
    expect((await ground(async () => [])).similar).toEqual([]);
  });

  it('is not taken for one that calls nothing where the memory fails', async () => {
    const lost = ground(() => Promise.reject(new EtudeError('MEMORY_UNAVAILABLE', 'the memory is away')));
    await expect(lost).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE' });
  });
});
