import type { Episode, RecalledItem, Scope, Transition } from '@etude/contracts/memory';
import { isUnjudged, type StopReason, type TaskResult, type TaskSpec, verdictText } from '@etude/contracts/task';
import { rulesOf } from '../evaluation/evaluators.js';
import type { Judgement } from '../evaluation/judge.js';
import { testsFrom } from '../skills/proof/run-skill-tests.js';
import type { AnswerCost } from '../model-answer.js';
import { touchedSources } from '../trust/sources.js';

/** One evaluated attempt, as the journal stores it. */
export interface Attempt extends AnswerCost {
  /** Attempts are counted from 1. Attempt 0 is the trial of a stored skill before any code is generated. */
  readonly attempt: number;
  readonly draft: string | null;
  readonly critique: string | null;
  readonly recalled: readonly RecalledItem[];
  readonly thought: string;
  readonly code: string;
  readonly judgement: Judgement;
  /** The tried skill as "name@version", or null if the model wrote the code. */
  readonly skill: string | null;
  readonly imported?: Transition['imported'];
  /** The untrusted sources of the tried or imported skills. */
  readonly ofSkill?: readonly string[] | undefined;
  /** Time of the evaluation, in ms since 1970. */
  readonly at: number;
}

export const NOTHING_SAID = { draft: null, critique: null, recalled: [], thought: '', skill: null } as const;

export interface RecordOrigin {
  readonly taskId: string;
  readonly rolloutId: string;
  readonly scope: Scope;
  readonly spec: TaskSpec;
  readonly fingerprint: string;
}

const originOf = ({ taskId, rolloutId, scope, spec: { prompt }, fingerprint }: RecordOrigin) => ({
  scope,
  taskId,
  rolloutId,
  prompt,
  fingerprint,
});

/** The stored form of an attempt. Its id is made from rollout and attempt, so a repeated write gives the same record. */
export function transitionOf(origin: RecordOrigin, evaluated: Attempt, before: readonly Attempt[] = []): Transition {
  const { judgement, at, ofSkill: _ofSkill, recalled, ...attempt } = evaluated;
  const { output: _output, ...judged } = judgement;
  const id = `${origin.rolloutId}.a${attempt.attempt}`;
  const touched = touchedIn(origin, [...before, evaluated]);
  return { ...originOf(origin), ...attempt, ...judged, ...touched, id, recalled: [...recalled], createdAt: at };
}

export interface Lessons {
  summary: string;
  reflection: string | null;
}

export function episodeOf(origin: RecordOrigin, attempts: readonly Attempt[], lessons: Lessons): Episode {
  const { evaluator } = origin.spec;
  const best = bestOf(attempts);
  const success = best?.judgement.verdict === 'AC';
  return {
    ...originOf(origin),
    id: `${origin.rolloutId}.episode`,
    evaluatorKind: evaluator.kind,
    entryPoint: rulesOf(evaluator).entryPoint ?? null,
    code: success ? best.code : null,
    ...(success ? { tests: testsFrom(evaluator) } : {}),
    ...lessons,
    success,
    importance: importanceOf(attempts, success),
    skillsUsed: [...new Set(attempts.flatMap(({ skill, imported = [] }) => [...(skill === null ? [] : [skill]), ...imported]))],
    ...touchedIn(origin, attempts),
    attempts: Math.max(1, attempts.filter(({ attempt }) => attempt > 0).length),
    model: best?.model ?? null,
    scripted: attempts.some(({ scripted }) => scripted),
    createdAt: attempts.at(-1)?.at ?? 0,
  };
}

/** The sources of these attempts: the task if it is untrusted, recalled memories, and untrusted sources of the skills that the attempts used. */
export function touchedBy(
  { taskId, spec }: Pick<RecordOrigin, 'taskId' | 'spec'>,
  attempts: ReadonlyArray<Pick<Attempt, 'recalled' | 'ofSkill'>>,
): string[] {
  const ofTask = spec.untrusted ? [`untrustedTasks/${taskId}`] : [];
  const recalled = touchedSources(attempts.flatMap((attempt) => attempt.recalled));
  return [...new Set([...ofTask, ...recalled, ...attempts.flatMap(({ ofSkill = [] }) => ofSkill)])];
}

function touchedIn(origin: RecordOrigin, attempts: readonly Attempt[]): Pick<Episode, 'touched'> {
  const touched = touchedBy(origin, attempts);
  return touched.length === 0 ? {} : { touched };
}

function importanceOf(attempts: readonly Attempt[], success: boolean): number {
  if (!success) return 0.6;
  return Math.min(0.9, 0.4 + 0.2 * (attempts.length - 1));
}

/** A summary made without a model: the task's first line and how each attempt ended. */
export function plainSummary({ spec }: RecordOrigin, attempts: readonly Attempt[], stopReason: StopReason): string {
  const [title = ''] = spec.prompt.trim().split('\n', 1);
  const trail = attempts.map(
    ({ skill, judgement }) => `${verdictText(judgement)}${skill ? ` by skill ${skill}` : ''} (${judgement.reason})`,
  );
  const solved = attempts.some(({ judgement }) => isUnjudged(judgement)) ? 'Answered' : 'Solved';
  const end = stopReason === 'solved' ? solved : `Not solved (${stopReason})`;
  return `${end}: ${title.trim().slice(0, 200)}\nAttempts: ${trail.join(', then ') || 'none was evaluated'}.`;
}

/** The accepted attempt, else the attempt that passed the largest share of its cases. Of equally good attempts, the latest one. */
export function bestOf(attempts: readonly Attempt[]): Attempt | null {
  const merit = ({ judgement }: Attempt) => (judgement.verdict === 'AC' ? 2 : judgement.casesPassed / Math.max(1, judgement.casesTotal));
  return attempts.reduce<Attempt | null>((best, attempt) => (best === null || merit(attempt) >= merit(best) ? attempt : best), null);
}

export function resultOf(attempts: readonly Attempt[]): TaskResult | null {
  const best = bestOf(attempts);
  if (best === null) return null;
  const { feedback: _feedback, ...judged } = best.judgement;
  const { code, skill, scripted, model } = best;
  return { ...judged, code, skill, scripted, model };
}
