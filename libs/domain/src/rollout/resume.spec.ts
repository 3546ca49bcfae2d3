import type { Skill } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Journal, LearningJournal } from '../ports/journal.js';
import {
  AnsweringModel,
  fenced,
  HIDDEN,
  learnsFromCritique,
  REFERENCE,
  runsCode,
  type SpecGiven,
  World,
} from '../../test/rollout-fixture.js';
import { runRollout } from './run-rollout.js';
import { PROMPT_BUDGETS, type PromptBudgets } from './step-prompts.js';
import { programOf } from '../../test/bundle-fixture.js';
import { stepWorlds } from '../../test/step-fixture.js';

interface Story {
  readonly spec: SpecGiven;
  readonly skills?: ReadonlyArray<{ skill: Skill; similarity: number }>;
  readonly answers?: (text: string) => string;
  readonly promptBudgets?: PromptBudgets;
}

const STORIES: Record<string, Story> = {
  'a training run that learns from its critique': { spec: { mode: 'training', referenceSolution: REFERENCE } },
  'a run that never succeeds': {
    spec: {
      limits: { attemptsMax: 3 },
      prompt: 'Impossible.',
      evaluator: { kind: 'io_cases', cases: [{ stdin: '?', expectedStdout: HIDDEN }] },
    },
  },
  'a run that a limit stops': { spec: { limits: { modelTokensMax: 40 } } },
  'a skill that fails, then attempts': { spec: {}, skills: [{ skill: programOf({ code: 'print("no")' }), similarity: 0.9 }] },
  'an agent that acts in steps': {
    spec: { strategy: 'codeact', files: [{ path: 'a.txt', contentBase64: 'YWJj' }], limits: { attemptsMax: 2 } },
    answers: (text) => {
      const step = Number(/Step (\d+) of/.exec(text)?.[1]);
      return AGENTS_STEPS[step - 1] ?? `FINAL ANSWER\n${fenced(text.includes('# Attempts so far') ? 'print("right")' : 'print("no")')}`;
    },
  },
  'an agent whose history is summarised': {
    spec: { strategy: 'codeact', evaluator: { kind: 'none' }, limits: { attemptsMax: 1 } },
    promptBudgets: { ...PROMPT_BUDGETS, history: 20 },
    answers: (text) => {
      const step = Number(/Step (\d+) of/.exec(text)?.[1]);
      if (Number.isNaN(step)) return 'It counts.';
      return step < 10
        ? `\`\`\`python\nprint(${step}, "is a number that this step has counted")\n\`\`\``
        : `FINAL ANSWER: ${text.includes('It counts.')}`;
    },
  },
  'a skill that needs its parameters': {
    spec: { evaluator: { kind: 'none' } },
    skills: [{ skill: programOf({ code: 'def double(n):\n    return 2 * n', entryPoint: 'double' }), similarity: 0.9 }],
  },
};

/** The answers of two attempts: a cell that calls tools and keeps a value, and tool calls by the model itself. */
const AGENTS_STEPS = [
  '```python\nfs_write("b.txt", fs_read("a.txt")["content"] * 2)\nstore("n", len(fs_list()["files"]))\n```',
  '```python\nprint(n, open("b.txt").read())\nobserve("it was written")\n```',
];

class Killed extends Error {}

/** The journal of a worker that dies at its n-th write, before or after the write is stored. */
function dyingAt<J extends Journal | LearningJournal>(journal: J, n: number, when: 'before' | 'after'): J {
  let writes = 0;
  const dying = async <T>(write: () => Promise<T>): Promise<T> => {
    writes += 1;
    if (writes === n && when === 'before') throw new Killed();
    const answer = await write();
    if (writes === n) throw new Killed();
    return answer;
  };
  return {
    ...journal,
    append: (...step: Parameters<Journal['append']>) => dying(() => journal.append(...step)),
    finish: (end: never) => dying(() => journal.finish(end)),
  };
}

const { own } = stepWorlds();

function worldOf({ spec, skills, answers = learnsFromCritique, promptBudgets }: Story): World {
  const deps = { ...(promptBudgets && { promptBudgets }), workSandboxes: own() };
  return new World({ spec, skills, model: new AnsweringModel(answers), runs: runsCode, deps });
}

function outcomeOf(world: World) {
  const told = world.journals.events.filter(({ type }) => type !== 'worker');
  const { end, learning } = world.journals.task;
  return { end, learning, told, writes: [...world.outbox.writes] };
}

/** Runs one worker for each death, in the rollout or in its learning, and then workers that finish. */
async function runDying(world: World, deaths: ReadonlyArray<{ n: number; when: 'before' | 'after' }>): Promise<void> {
  for (const death of [...deaths, null, null]) {
    try {
      const dies = <J extends Journal | LearningJournal>(journal: J) => (death ? dyingAt(journal, death.n, death.when) : journal);
      const journal = world.journals.open();
      if (journal === null) await world.learn(dies);
      else await runRollout(world.input, { ...world.deps, journal: dies(journal) }, new AbortController().signal);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
  }
}

describe.each(Object.entries(STORIES))('%s', (_, story) => {
  it('ends the same after a death at any write, and repeats no model call', async () => {
    const undisturbed = worldOf(story);
    await runDying(undisturbed, []);
    const asked = (undisturbed.model as AnsweringModel).asked;
    const writes = undisturbed.steps.length + 1;
    for (let n = 1; n <= writes + 2; n += 1) {
      const world = worldOf(story);
      // The last two deaths happen during learning: after the model's answer, and at the end.
      await runDying(
        world,
        n <= writes
          ? [{ n, when: 'after' }]
          : [
              { n: writes, when: 'after' },
              { n: n - writes, when: 'after' },
            ],
      );
      expect(outcomeOf(world)).toEqual(outcomeOf(undisturbed));
      expect((world.model as AnsweringModel).asked).toEqual(asked);
    }
  });

  it('ends the same after any number of deaths', async () => {
    const undisturbed = worldOf(story);
    await runDying(undisturbed, []);
    const deaths = fc.array(fc.record({ n: fc.integer({ min: 1, max: 6 }), when: fc.constantFrom('before' as const, 'after' as const) }), {
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(deaths, async (given) => {
        const world = worldOf(story);
        await runDying(world, given);
        expect(outcomeOf(world)).toEqual(outcomeOf(undisturbed));
        expect(world.sandboxes.requests).toEqual(undisturbed.sandboxes.requests);
      }),
      { numRuns: 30 },
    );
  });

  it('shows hidden cases to no prompt, and the reference only to the reflection', async () => {
    const world = worldOf(story);
    await runDying(world, []);
    const { asked } = world.model as AnsweringModel;
    expect(asked.filter((text) => text.includes(HIDDEN))).toEqual([]);
    expect(asked.filter((text) => text.includes(REFERENCE) && !text.includes('# Reference solution'))).toEqual([]);
    expect(asked.filter((text) => text.includes(REFERENCE))).toHaveLength(story.spec.referenceSolution === undefined ? 0 : 1);
    expect(JSON.stringify([world.sandboxes.requests, ...world.outbox.writes.values()])).not.toContain(REFERENCE);
    expect(JSON.stringify(world.outbox.of('transition'))).not.toContain(HIDDEN);
  });
});
