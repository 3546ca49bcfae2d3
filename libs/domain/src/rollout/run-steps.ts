import type { RecalledItem } from '@etude/contracts/memory';
import { extractAnswer } from '../evaluation/answer-code.js';
import { rulesOf } from '../evaluation/evaluators.js';
import type { Judgement } from '../evaluation/judge.js';
import { contentDigest } from '../skills/content-digest.js';
import { type Attempt, NOTHING_SAID, touchedBy } from './attempt-record.js';
import { untrustedOfSkill } from '../skills/life/carried-over.js';
import { compactSteps } from './compact-steps.js';
import { importedSkills, skillWithId, tryImporting } from './imported-skills.js';
import { keepFindings, recallFindings } from './kept-findings.js';
import { recallStep } from './recall-step.js';
import { askModel, type RolloutContext } from './rollout-context.js';
import { type FinalAnswer, PYTHON, readStep, type StepAnswer } from './step-calls.js';
import { stepRequest, type TakenStep, WHOLE_HISTORY } from './step-prompts.js';
import { StepTools } from './step-tools.js';
import { Workbench } from './workbench.js';
import { addCost, type AnswerCost, NO_COST } from '../model-answer.js';

const ACTIONS_MAX = 10;
/** The attempt ends after this many answers in a row that hold neither a call nor a final answer. */
const IDLE_MAX = 3;
/** The attempt ends after this many equal steps in a row. From the second equal step on, a remark warns the model. */
const REPEATS_MAX = 4;

export interface AgentAtWork {
  readonly recalled: readonly RecalledItem[];
  readonly tools: StepTools;
  readonly bench: Workbench;
}

/** Recalls memories and opens the tools, once per rollout and not per attempt. */
export async function beginWork(context: RolloutContext): Promise<AgentAtWork> {
  const recalled = await recallStep(context, 1, '');
  const tools = await StepTools.open(context, {
    sandbox: () => bench.sandbox.opened(),
    touched: () => touchedIn(context, { recalled, bench, tools }),
  });
  const bench = new Workbench(context, tools, recalled);
  await recallFindings(context, bench);
  return { recalled, tools, bench };
}

export async function endWork(context: RolloutContext, work: AgentAtWork): Promise<void> {
  await keepFindings(context, work.bench.findings, await touchedIn(context, work));
  await work.bench.sandbox.close();
}

async function touchedIn(context: RolloutContext, work: AgentAtWork): Promise<readonly string[]> {
  const recalled = [...work.recalled, ...work.bench.recalled];
  return touchedBy(context, [{ recalled, ofSkill: await untrustedOfTools(context, work) }]);
}

/** The untrusted sources of skills that the agent ran by name. If the agent has outside servers, the task counts as untrusted too. */
async function untrustedOfTools({ taskId, scope, deps }: RolloutContext, { bench, tools }: AgentAtWork): Promise<readonly string[]> {
  const used = await Promise.all([...bench.usedSkills].map((id) => skillWithId(id, scope, deps.procedural)));
  const outside = tools.readsOutside ? [`untrustedTasks/${taskId}`] : [];
  return [...used.flatMap((skill) => (skill === null ? [] : untrustedOfSkill(skill))), ...outside];
}

/** One attempt in steps: the model acts and sees the outcome, until it answers or a limit is reached. Follows CodeAct (Wang et al. 2024). */
export async function runSteps(context: RolloutContext, attempt: number, work: AgentAtWork): Promise<Attempt> {
  const stepsMax = context.spec.limits.agentStepsMax;
  const taken: TakenStep[] = [];
  let cost = NO_COST;
  let end: CompletedAnswer | string = `no final answer within ${stepsMax} steps`;
  let history = WHOLE_HISTORY;
  for (let step = 1; step <= stepsMax; step += 1) {
    const act = `a${attempt}.s${step}.act`;
    history = await compactSteps(context, { act, taken, history }, (answer) => (cost = addCost(cost, answer)));
    const tools = await work.tools.offered();
    const now = { step, taken, history, tools };
    const said = await askModel(context, act, 'act', () => stepRequest(context, work, now));
    cost = addCost(cost, said);
    const answer = readStep(said, work.tools.nameOf);
    const observations = [];
    for (const [at, call] of answer.calls.slice(0, ACTIONS_MAX).entries()) {
      const kind = call.tool === PYTHON ? 'c' : 't';
      observations.push(await work.bench.act(`a${attempt}.s${step}.${kind}${at + 1}`, step, call));
    }
    const final = answer.final === null ? null : await completed(context, `a${attempt}.s${step}.file`, answer.final, work.bench);
    const wrong = final !== null && 'wrong' in final ? final.wrong : null;
    taken.push({ step, said, observations, remark: wrong ?? remarkOn(answer, taken, said) });
    const ended = final !== null && 'answer' in final ? final : whyStuck(taken);
    if (ended !== null) {
      end = ended;
      break;
    }
  }
  return judged(context, attempt, work, { end, taken, cost });
}

interface CompletedAnswer {
  readonly answer: string;
  /** Whether `answer` is the text of a file. Then all of it is code, without fences. */
  readonly isFile: boolean;
}

async function completed(
  { spec: { evaluator } }: RolloutContext,
  key: string,
  { answer, file, problem }: FinalAnswer,
  bench: Workbench,
): Promise<CompletedAnswer | { readonly wrong: string }> {
  if (problem !== null) return { wrong: `Your final answer was not taken: ${problem}` };
  const hasCode = extractAnswer(answer) !== null;
  const path = file ?? (evaluator.kind === 'command' && !hasCode ? evaluator.answerPath : null);
  if (path === null) {
    if (evaluator.kind === 'none' || hasCode) return { answer, isFile: false };
    return { wrong: 'Your final answer was not taken: it held no code. Give it in a fenced ```python block, or name its file.' };
  }
  const text = await bench.file(key, path);
  return text === null
    ? { wrong: `Your final answer was not taken: there is no file "${path}" of at most 1 MiB.` }
    : { answer: text, isFile: true };
}

function remarkOn({ calls, final }: StepAnswer, taken: readonly TakenStep[], said: TakenStep['said']): string | null {
  if (calls.length > ACTIONS_MAX) return `Only the first ${ACTIONS_MAX} calls were performed.`;
  if (calls.length === 0 && final === null)
    return 'Your answer held no step. Call a tool, answer with one fenced ```python block, or end with a line "FINAL ANSWER" and the answer.';
  const repeats = repeatsOf([...taken, { step: 0, said, observations: [], remark: null }]);
  return repeats > 1 ? `You have taken this very step ${repeats} times. Do something else, or give your final answer.` : null;
}

function whyStuck(taken: readonly TakenStep[]): string | null {
  const idle = taken.slice(-IDLE_MAX).filter(({ said, observations }) => observations.length === 0 && (said.toolCalls ?? []).length === 0);
  if (idle.length === IDLE_MAX) return `${IDLE_MAX} answers in a row held no step`;
  return repeatsOf(taken) >= REPEATS_MAX ? `the same step ${REPEATS_MAX} times in a row` : null;
}

/** The number of equal steps at the end of `taken`. A step that showed the finding of an earlier task is never equal to another. */
function repeatsOf(taken: readonly TakenStep[]): number {
  const digests = taken.map(({ step, said: { text, toolCalls }, observations }) =>
    observations.some(({ isOffer }) => isOffer)
      ? `${step}`
      : toolCalls === undefined
        ? contentDigest(text)
        : contentDigest(toolCalls.map(({ name, arguments: given }) => [name, given])),
  );
  const other = digests.findLastIndex((digest) => digest !== digests.at(-1));
  return digests.length - 1 - other;
}

interface EndedSteps {
  readonly end: CompletedAnswer | string;
  readonly taken: readonly TakenStep[];
  readonly cost: AnswerCost;
}

async function judged(context: RolloutContext, attempt: number, work: AgentAtWork, { end, taken, cost }: EndedSteps): Promise<Attempt> {
  const { evaluator } = context.spec;
  const recalled = [...work.recalled, ...work.bench.recalled];
  const { answer: text, isFile } = typeof end === 'string' ? { answer: '', isFile: false } : end;
  const code = evaluator.kind === 'none' ? null : isFile ? text : (extractAnswer(text, rulesOf(evaluator).entryPoint)?.code ?? null);
  const imports = await importedSkills(context, recalled, [code ?? '', ...codeOf(taken)].join('\n'));
  const untrusted = [...imports.untrusted, ...(await untrustedOfTools(context, work))];
  const ofSkill = untrusted.length === 0 ? {} : { ofSkill: untrusted };
  const said = { ...NOTHING_SAID, ...ofSkill, attempt, recalled, thought: transcriptOf(taken), ...cost };
  const judgement = judgementOf(evaluator.kind === 'none', end, text);
  return tryImporting(context, said, code, imports, judgement);
}

const codeOf = (taken: readonly TakenStep[]) =>
  taken.flatMap(({ observations }) => observations.filter(({ call }) => call.tool === PYTHON).map(({ query }) => query));

function judgementOf(isInWords: boolean, end: EndedSteps['end'], text: string): Judgement {
  const nothing = { casesPassed: 0, casesTotal: 0, output: text };
  if (isInWords && typeof end !== 'string') return { verdict: 'AC', reason: 'the agent answered', feedback: '', ...nothing };
  const reason = typeof end === 'string' ? end : 'the final answer held no code';
  const feedback = `The attempt ended without an answer that can be judged: ${reason}.`;
  return { verdict: 'RE', reason, feedback, ...nothing, casesTotal: 1 };
}

function transcriptOf(taken: readonly TakenStep[]): string {
  const steps = taken.map(({ step, said: { text }, observations }) => {
    const actions = observations.map(({ call, query, text: result }) => `${call.tool}(${query})\n-> ${result.slice(0, 400)}`);
    return [`Step ${step}: ${text.trim()}`, ...actions].join('\n');
  });
  return steps.join('\n\n').slice(0, 40_000);
}
