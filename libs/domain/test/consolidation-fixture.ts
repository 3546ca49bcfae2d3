import type { Episode, Fact, MemoryWrite, Skill, SkillTest, Transition } from '@etude/contracts/memory';
import type { ProceduralMemorySettings, SkillStatus } from '@etude/contracts/skill-proof';
import { consolidate, type ConsolidationDeps } from '../src/consolidation/consolidate.js';
import type { ConsolidationInput } from '../src/consolidation/consolidate-agent.js';
import type { ConsolidationUnit, ConsolidationUnits } from '../src/ports/consolidation-units.js';
import type { Embedder } from '../src/ports/model.js';
import type { MemoryHit, ProceduralMemory, SkillMove } from '../src/ports/memory.js';
import { FakeConsolidationReport } from './fake-consolidation-report.js';
import { episodeOf, settingsOf } from './memory-records.js';
import { AnsweringModel } from './rollout-fixture.js';

export const NOW = 10 * 86_400_000;
const signal = new AbortController().signal;
export const scope = { tenant: 'acme', agent: 'solver', user: null };
const test: SkillTest = { kind: 'io', stdin: '1', expectedStdout: '2', comparison: 'whitespace', tolerance: 0 };

export function episode(id: string, over: Partial<Episode> = {}): Episode {
  return episodeOf({
    id,
    scope,
    taskId: `t-${id}`,
    rolloutId: `r-${id}`,
    prompt: 'double the number',
    fingerprint: 'double',
    evaluatorKind: 'io_cases',
    entryPoint: null,
    code: 'print(int(input()) * 2)',
    tests: [test],
    summary: 'Doubled it.',
    createdAt: NOW - 1_000,
    ...over,
  });
}

/** An embedder that compares only the first letters of words. Prompts that share more of these letters are more similar. */
export const embedder: Embedder = {
  profile: { model: 'words', dimension: 26, denseWeight: 1, calibrate: (cosine) => Math.max(0, cosine) },
  embed: async (texts) =>
    texts.map((text) => {
      const vector = new Float32Array(26);
      for (const word of text.split(' ')) vector[word.charCodeAt(0) % 26] = 1;
      return vector;
    }),
};

export const FACTS = JSON.stringify({
  facts: [{ text: 'Doubling is multiplying by two.', category: 'arithmetic', confidence: 0.9, subject: 'doubling' }],
  skill: { description: 'Doubles a number.', scenarios: ['a number is to be doubled'] },
});

export class Crash extends Error {}
export function ignoreCrash(error: unknown): void {
  if (!(error instanceof Crash)) throw error;
}

const unitNameOf = ({ run: id, agent }: Pick<ConsolidationUnit, 'run' | 'agent'>) => `${id}/${agent}`;

/** A memory that applies outbox writes at once. After `dieAfter(n)`, it throws after its n-th effect. */
export function world(
  episodes: readonly Episode[],
  answer: (text: string, call: number) => string = () => FACTS,
  set: Partial<ProceduralMemorySettings> = {},
  transitions: readonly Transition[] = [],
  searched: (text: string, learned: readonly Fact[]) => readonly MemoryHit[] = () => [],
) {
  const facts = new Map<string, Fact>();
  const units = new Set<string>();
  const writes = new Map<string, MemoryWrite>();
  const skills = new Map<string, Skill>();
  let effectsLeft = Number.POSITIVE_INFINITY;
  const effect = <T>(work: () => T): T => {
    if (effectsLeft <= 0) throw new Crash('killed before');
    const result = work();
    effectsLeft -= 1;
    if (effectsLeft === 0) throw new Crash('killed after an effect');
    return result;
  };
  const episodic: ConsolidationDeps['episodic'] = {
    search: async () => [],
    transitions: async (_scope, rolloutId) => transitions.filter((one) => one.rolloutId === rolloutId),
    async *every({ agent }, sinceMs) {
      yield* episodes.filter((one) => one.createdAt >= sinceMs && (agent === null || one.scope.agent === agent));
    },
  };
  const applied = new Set<string>();
  const pending = new Set<ConsolidationUnit>();
  const consolidationUnits: ConsolidationUnits = {
    stage: async (unit) => {
      const learned = unit.pages.flatMap((page) => page.facts);
      const added = learned.filter(({ id }) => !facts.has(id)).length;
      const commit: Awaited<ReturnType<ConsolidationUnits['stage']>>['commit'] = async (outbox) => {
        effect(() => {
          if (applied.has(unitNameOf(unit))) return;
          applied.add(unitNameOf(unit));
          pending.add(unit);
          for (const { id, read } of unit.pages) for (const mark of [id, ...read.map(({ unitId }) => unitId)]) units.add(mark);
          for (const fact of learned) facts.set(fact.id, fact);
        });
        await consolidationUnits.complete(unit, outbox);
      };
      return { added, reinforced: learned.length - added, search: async (_scope, { text }) => searched(text, learned), commit };
    },
    isApplied: async (unit) => applied.has(unitNameOf(unit)),
    complete: async ({ agent }, outbox) => {
      for (const unit of [...pending].filter((one) => one.agent === agent)) {
        for (const skill of unit.skills) await outbox.put('acme', `${agent} ${skill.scope.user} ${skill.name}`, { kind: 'skill', skill });
        pending.delete(unit);
      }
    },
    undo: async () => [],
  };
  const report = new FakeConsolidationReport();
  const { lines, answers, putLine, putAnswer } = report;
  report.putLine = (line) => effect(() => putLine(line));
  report.putAnswer = (key, kept) => effect(() => putAnswer(key, kept));
  const moves: SkillMove[] = [];
  const procedural: Pick<ProceduralMemory, 'every' | 'versions' | 'countNames' | 'search' | 'move'> = {
    search: async () => [],
    move: async (asked) => (moves.push(...asked), []),
    versions: async ({ agent }, name) => [...skills.values()].filter((skill) => skill.scope.agent === agent && skill.name === name),
    countNames: async () => skills.size,
    async *every({ agent }) {
      yield* [...skills.values()].filter((skill) => skill.scope.agent === agent);
    },
  };
  const model = new AnsweringModel(answer);
  const deps: ConsolidationDeps = {
    episodic,
    semantic: {
      appliedAmong: async (_tenant, unitIds) => new Set(unitIds.filter((id) => units.has(id))),
      search: async (_scope, { text }) => searched(text, []),
    },
    units: consolidationUnits,
    report,
    mayStore: async (text) => !text.includes('SECRET'),
    procedural: procedural as ProceduralMemory,
    settings: settingsOf({ enabled: true, autoRegisterSkills: true, ...set }),
    model,
    embedder,
    outbox: {
      put: async (_tenant, writeId, write) =>
        effect(() => {
          if (writes.has(writeId) || write.kind !== 'skill') return;
          writes.set(writeId, write);
          skills.set(writeId, write.skill);
        }),
    },
    settledStatuses: async (proposed) => proposed.map((): SkillStatus => 'active'),
  };
  const again = (id: string, more: Partial<ConsolidationInput> = {}) => {
    const budget = { modelCallsMax: 0, tokensMax: 0 };
    return consolidate({ run: id, tenant: 'acme', agent: null, days: 7, dryRun: false, now: NOW, budget, ...more }, deps, signal);
  };
  let runs = 0;
  /** Makes a new run, without the lines and answers of earlier runs. Returns its outcome and plan. */
  const run = async (dryRun = false, more: Partial<ConsolidationInput> = {}) => {
    lines.clear();
    answers.clear();
    const outcome = await again(`c${(runs += 1)}`, { dryRun, ...more });
    return { ...outcome, plan: [...lines.values()].flatMap(({ plan }) => plan) };
  };
  const state = () => ({
    facts: [...facts.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    units: [...units].toSorted(),
    skills: [...skills.values()],
    writes: [...writes.keys()].toSorted(),
  });
  return { run, again, lines, state, asked: model.asked, facts, skills, moves, dieAfter: (effects: number) => (effectsLeft = effects) };
}
