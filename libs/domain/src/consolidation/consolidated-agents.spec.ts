import { EtudeError } from '@etude/contracts/errors';
import { describe, expect, it } from 'vitest';
import { episode, FACTS, scope, world } from '../../test/consolidation-fixture.js';
import { hitOf } from '../../test/memory-records.js';

/** Two solved episodes of an agent that only look like each other. */
const pairOf = (agent: string) =>
  ['1', '2'].map((n) => episode(agent + n, { scope: { ...scope, agent }, prompt: `q ${agent}`, fingerprint: agent, tests: [] }));

describe('a run over many agents', () => {
  it('holds a thousand agents apart, one after another', async () => {
    const agents = Array.from({ length: 1_000 }, (_, at) => `a${String(at).padStart(4, '0')}`);
    const { run, lines, facts } = world(agents.flatMap(pairOf), (text) => FACTS.replace('by two', (/q a\d+/.exec(text) ?? [''])[0]));
    expect(await run()).toMatchObject({ episodesRead: 2_000, factsAdded: 1_000, modelCalls: 1_000 });
    expect([...lines.keys()]).toEqual(agents);
    expect(facts.size).toBe(1_000);
    expect(await run()).toMatchObject({ episodesRead: 2_000, factsAdded: 0, modelCalls: 0 });
  });

  it('goes on after an agent that fails, and repeats only that one', async () => {
    let isDown = true;
    const { again, lines, asked } = world(['a', 'b', 'c'].flatMap(pairOf), (text) => {
      if (isDown && text.includes('q b')) throw new EtudeError('MODEL_UNAVAILABLE', 'no');
      return FACTS;
    });
    await expect(again('c1')).rejects.toMatchObject({ code: 'MODEL_UNAVAILABLE' });
    expect([...lines.values()].map(({ agent, state }) => [agent, state])).toEqual([
      ['a', 'applied'],
      ['b', 'failed'],
      ['c', 'applied'],
    ]);
    isDown = false;
    expect(await again('c1')).toMatchObject({ modelCalls: 3, episodesRead: 6 });
    expect(asked).toHaveLength(4);
    expect(lines.get('b')).toMatchObject({ state: 'applied', reason: '' });
  });

  it.each([
    ['model calls', { modelCallsMax: 2, tokensMax: 0 }],
    ['tokens', { modelCallsMax: 0, tokensMax: 1 }],
  ])('leaves agents for the next run once its %s are spent', async (_, budget) => {
    const { run, lines } = world(['a', 'b', 'c'].flatMap(pairOf));
    await run(false, { budget });
    const first = [...lines.values()];
    expect(first.map(({ state }) => state)).toContain('left');
    expect(first.at(-1)).toMatchObject({ agent: 'c', state: 'left', reason: expect.stringContaining('budget') });
    await run();
    expect([...lines.values()].map(({ state }) => state).toSorted()).toEqual(
      first.map(({ state }) => (state === 'left' ? 'applied' : 'unchanged')).toSorted(),
    );
  });

  it("leaves agents for the next run once the tenant's budget of the day is used up, without failing", async () => {
    const { run, lines } = world(['a', 'b'].flatMap(pairOf), (_text, call) => {
      if (call > 1) throw new EtudeError('BUDGET_USED_UP', 'no tokens left');
      return FACTS;
    });
    await run();
    expect([...lines.values()].map(({ state }) => state)).toEqual(['applied', 'left']);
  });

  it('applies nothing that would hide the lessons of held-back episodes, and says so when dry', async () => {
    const own = hitOf({ id: 'a1', layer: 'semantic', kind: 'reflection', text: 'Doubled it.' });
    const { run, lines, state } = world(pairOf('a'), undefined, {}, [], (_text, learned) => (learned.length === 0 ? [own] : []));
    const before = state();
    await run(true);
    const dry = lines.get('a');
    await run();
    expect(lines.get('a')).toMatchObject({
      state: 'gated',
      reason: 'recall would show 0 instead of 2 of 2 held-back episodes their own lesson',
    });
    expect(dry).toEqual(lines.get('a'));
    expect(state()).toEqual(before);
    await run(false, { force: true });
    expect(lines.get('a')).toMatchObject({ state: 'applied', factsAdded: 1 });
  });

  it('stores no fact that holds a secret', async () => {
    const { run, facts } = world(pairOf('a'), () => FACTS.replace('by two', 'SECRET'));
    expect(await run()).toMatchObject({ factsAdded: 0 });
    expect(facts.size).toBe(0);
  });
});
