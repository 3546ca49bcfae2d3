import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SandboxRun } from '@etude/contracts/sandbox';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { TaskSpec } from '@etude/contracts/task';
import type { z } from 'zod';
import type { ChatModel, ChatRequest, ChatResponse } from '../src/ports/model.js';
import { registryOf, proven, TEST_SIGNER } from './bundle-fixture.js';
import type { LearningJournal } from '../src/ports/journal.js';
import { LexicalEmbedder } from '../src/retrieval/lexical-embedder.js';
import { FakeClock } from './fake-clock.js';
import { FakeJournalStore } from './fake-journal.js';
import { FakeMemoryOutbox } from './fake-memory-outbox.js';
import { hitOf, settingsOf } from './memory-records.js';
import { FakeSandboxes, type FakeRun } from './fake-sandboxes.js';
import { type LearningDeps, learnFromRollout } from '../src/rollout/learn-from-rollout.js';
import type { RolloutDeps, RolloutInput } from '../src/rollout/rollout-context.js';
import { runRollout } from '../src/rollout/run-rollout.js';

export const HIDDEN = 'hidden-7f3a';
export const REFERENCE = 'reference-91bc';

export type SpecGiven = Partial<z.input<typeof TaskSpec>>;

/** The task to double a number. Code counts as right if it contains the word "right". */
export function specOf(given: SpecGiven = {}): TaskSpec {
  return TaskSpec.parse({
    prompt: 'The baker doubles her loaves.\nPrint twice the number you read.',
    evaluator: {
      kind: 'io_cases',
      cases: [
        { stdin: '1', expectedStdout: '2', public: true },
        { stdin: `${HIDDEN}-in`, expectedStdout: `${HIDDEN}-out` },
      ],
    },
    ...given,
  });
}

const STDOUT: Record<string, string> = { 1: '2', [`${HIDDEN}-in`]: `${HIDDEN}-out` };

/** The result of a run: a crash for code with the word "crash", a right answer for code with "right", else a wrong answer. */
export const runsCode: FakeRun = (run) => {
  const code = 'code' in run ? run.code : '';
  if (code.includes('crash'))
    return { exit: 'nonzero', exitCode: 1, stderr: 'Traceback (most recent call last):\n  File "main.py", line 1\nValueError: no' };
  if (!code.includes('right')) return { stdout: 'wrong', passed: false, value: 'wrong' };
  return { stdout: run.kind === 'program' ? (STDOUT[run.stdin] ?? '') : '', passed: true, value: valueOf(run) };
};

const valueOf = (run: SandboxRun) => (run.kind === 'call' ? (run.args[0] ?? null) : undefined);

/** A model whose answers depend on the request. It records the texts of all requests. */
export class AnsweringModel implements ChatModel {
  readonly asked: string[] = [];

  constructor(private readonly answer: (text: string, call: number) => string | Promise<string>) {}

  async chat({ messages }: ChatRequest, signal: AbortSignal): Promise<ChatResponse> {
    this.asked.push(messages.map(({ content }) => content).join('\n'));
    const text = await this.answer(this.asked.at(-1)!, this.asked.length);
    signal.throwIfAborted();
    return { text, finishReason: 'stop', model: 'fake', scripted: true, inputTokens: 10, outputTokens: 5, costUsd: 0.01 };
  }
}

export const fenced = (code: string) => `My thought.\n\n\`\`\`python\n${code}\n\`\`\``;

const LESSONS = {
  summary: 'It was doubled.',
  reflection: 'Read before you print.',
  description: 'Doubles a number.',
  scenarios: ['doubling loaves'],
};

/** Answers with wrong code, or with right code if the prompt has a critique. Other requests get fixed texts. */
export const learnsFromCritique = (text: string): string => {
  if (text.includes('# Lessons')) return JSON.stringify(LESSONS);
  return fenced(/critique/i.test(text) ? 'print("right")' : 'print("no")');
};

/** Replacements for the fixture's ports. If a semantic memory has only `search`, its `about` finds nothing. */
export type GivenDeps = Partial<Omit<RolloutDeps, 'semantic'>> & { readonly semantic?: Partial<RolloutDeps['semantic']> };

export interface WorldGiven {
  readonly spec?: SpecGiven;
  readonly model?: ChatModel;
  readonly runs?: FakeRun;
  readonly skills?: ReadonlyArray<{ skill: Skill; similarity: number }>;
  readonly deps?: GivenDeps;
  readonly learning?: Partial<LearningDeps['limits']>;
  /** Settings of the task's agent. By default, skills are learned and used. */
  readonly settings?: Partial<ProceduralMemorySettings>;
}

const LEARNS = ProceduralMemorySettings.parse({ enabled: true, autoRegisterSkills: true });

export class World {
  readonly clock = new FakeClock(1_000);
  readonly outbox = new FakeMemoryOutbox();
  /** Skills that were counted as offered, as "name@version". */
  readonly offered: string[] = [];
  readonly journals = new FakeJournalStore('t00000000-r1', 1_000, () => this.clock.now());
  readonly sandboxes: FakeSandboxes;
  readonly model: ChatModel;
  readonly input: RolloutInput;

  constructor(private readonly given: WorldGiven = {}) {
    this.sandboxes = new FakeSandboxes(given.runs ?? runsCode);
    this.model = given.model ?? new AnsweringModel(learnsFromCritique);
    this.input = { task: { id: 't00000000', tenant: 'acme', spec: specOf(given.spec) }, rolloutId: 't00000000-r1' };
  }

  get deps(): Omit<RolloutDeps, 'journal'> {
    const { model, sandboxes, outbox, clock } = this;
    const nothing = { search: () => Promise.resolve([]) };
    // Memory holds an unrelated fact, so that the rollout asks for a draft and recalls nothing.
    const stranger = { search: () => Promise.resolve([hitOf({ id: 'f0', kind: 'fact', layer: 'semantic', similarity: 0.01 })]) };
    return {
      model,
      sandboxes,
      workSandboxes: { open: () => Promise.reject(new Error('this rollout works in no sandbox')) },
      outbox,
      clock,
      questions: { ask: () => Promise.resolve(null) },
      givesUp: () => false,
      episodic: nothing,
      procedural: proceduralOf(
        (this.given.skills ?? []).map(({ skill, similarity }) => ({ skill: skill.proof ? skill : proven(skill), similarity })),
        this.offered,
      ),
      settings: settingsOf({ ...LEARNS, ...this.given.settings }),
      embedder: new LexicalEmbedder(),
      moveInWorld: () => Promise.reject(new Error('this rollout is in no world')),
      wishes: { request: () => Promise.resolve('w1') },
      outsideTools: {
        list: async () => ({ tools: [], problems: [] }),
        call: async () => ({ success: false, error: 'there are no servers', untrusted: true }),
      },
      checker: TEST_SIGNER,
      templateFor: () => {
        throw new EtudeError('FAILED_PRECONDITION', 'no sandbox has these packages');
      },
      ...this.given.deps,
      semantic: { about: () => Promise.resolve(null), ...stranger, ...this.given.deps?.semantic },
    };
  }

  /** Runs the rollout in one worker, and then the learning from it. @returns the end of the rollout */
  async run(signal: AbortSignal = new AbortController().signal) {
    const journal = this.journals.open();
    if (!journal) throw new Error('the task is final');
    const end = await runRollout(this.input, { ...this.deps, journal }, signal);
    await this.learn();
    return end;
  }

  /** Runs learning in one worker, if it is pending. */
  async learn(dies = (journal: LearningJournal) => journal): Promise<void> {
    const journal = this.journals.openLearning();
    const limits = { wallMs: 600_000, modelTokensMax: 100_000, ...this.given.learning };
    if (journal === null) return;
    await learnFromRollout(this.input, { ...this.deps, journal: dies(journal), limits }, new AbortController().signal);
  }

  get steps(): string[] {
    return this.journals.events.flatMap((event) => (event.type === 'step' ? event.step : []));
  }

  /** Keys of the steps of learning that asked the model. */
  get learned(): string[] {
    return this.journals.entries.flatMap(({ key }) => (key === 't.lessons' || key === 't.skill' ? key : []));
  }
}

export async function ran(given: WorldGiven = {}) {
  const world = new World(given);
  return { world, end: await world.run() };
}

function proceduralOf(skills: ReadonlyArray<{ skill: Skill; similarity: number }>, offered: string[]): RolloutDeps['procedural'] {
  return {
    ...registryOf(...skills.map(({ skill }) => skill)),
    search: ({ tenant, agent, also = [] }, { similarityMin = 0 }) =>
      Promise.resolve(
        skills
          .filter(({ skill, similarity }) => [agent, ...also].some((owner) => isOf(skill, tenant, owner)) && similarity >= similarityMin)
          .map((hit) => ({ ...hit, score: hit.similarity })),
      ),
    byFingerprint: ({ tenant, agent }, fingerprint) =>
      Promise.resolve(
        skills.map(({ skill }) => skill).filter((skill) => isOf(skill, tenant, agent) && skill.fingerprints.includes(fingerprint)),
      ),
    countOffers: async (offers) => void offered.push(...offers.map(({ name, version }) => `${name}@${version}`)),
    countNames: () => Promise.resolve(skills.length),
  };
}

const isOf = ({ scope }: Skill, tenant: string, agent: string | null) => scope.tenant === tenant && scope.agent === agent;
