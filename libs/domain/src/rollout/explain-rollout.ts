import { EtudeError } from '@etude/contracts/errors';
import { type Evaluator, Usage } from '@etude/contracts/task';
import type { Journal, JournalEntry, LearningJournal } from '../ports/journal.js';
import type { ProceduralMemory } from '../ports/memory.js';
import type { ChatMessage, ChatRequest, ChatResponse, ChatTool } from '../ports/model.js';
import { LexicalEmbedder } from '../retrieval/lexical-embedder.js';
import { approximateTokens } from '../model-answer.js';
import { learnFromRollout } from './learn-from-rollout.js';
import type { RolloutDeps, RolloutInput } from './rollout-context.js';
import { runRollout } from './run-rollout.js';
import type { RecalledItem } from '@etude/contracts/memory';
import type { ExecutionResult, RunResult } from '@etude/contracts/sandbox';
import { extractAnswer } from '../evaluation/answer-code.js';
import { rulesOf } from '../evaluation/evaluators.js';
import type { Judgement } from '../evaluation/judge.js';
import { isCall, PYTHON, readStep, textOf } from './step-calls.js';

/** The ports from which an explanation reads when it repeats a rollout from its journal. */
interface ExplainDeps extends Pick<RolloutDeps, 'episodic' | 'semantic' | 'settings' | 'checker' | 'templateFor' | 'promptBudgets'> {
  readonly procedural: Pick<ProceduralMemory, 'search' | 'byFingerprint' | 'versions' | 'countNames'>;
}

/** A part of a message, from one heading to the next. */
export interface PromptSection {
  readonly role: ChatMessage['role'];
  /** The heading. Empty for the text before the first heading. */
  readonly title: string;
  readonly text: string;
  /** Estimated number of tokens: a quarter of the characters. */
  readonly tokens: number;
  /** The records from which the text was made, such as "fact f1". */
  readonly sources: readonly string[];
}

export interface StepExplanation {
  readonly step: string;
  /** The parts of the prompt. Their texts, joined by line feeds, are the whole prompt. */
  readonly sections: readonly PromptSection[];
  readonly totalTokens: number;
  readonly steps: readonly string[];
}

/**
 * Shows the prompt of one step. The rollout is repeated from its journal up to this step, but nothing is written or executed.
 *
 * @param step key of the step; null means the last step that asked the model
 * @throws EtudeError NOT_FOUND if the step asked no model; FAILED_PRECONDITION if the repeated rollout doesn't reach the step
 */
export async function explainStep(
  input: RolloutInput,
  entries: readonly JournalEntry[],
  step: string | null,
  deps: ExplainDeps,
): Promise<StepExplanation> {
  const steps = modelSteps(entries);
  const wanted = step ?? steps.at(-1);
  if (wanted === undefined) throw new EtudeError('NOT_FOUND', `The journal of task ${input.task.id} has no model call or was deleted.`);
  if (!steps.includes(wanted))
    throw new EtudeError('NOT_FOUND', `Step "${wanted}" made no model call. These steps did: ${steps.join(', ')}.`);
  const { messages, tools = [], sources = {} } = await askedIn(input, entries, wanted, deps);
  const sections = messages.flatMap(sectionsOf).map((section) => ({ ...section, sources: sources[section.title] ?? [] }));
  if (tools.length > 0) sections.splice(1, 0, toolsSection(tools));
  return { step: wanted, sections, totalTokens: sections.reduce((sum, { tokens }) => sum + tokens, 0), steps };
}

/** The usage of a journal entry includes all entries before it. */
function modelSteps(entries: readonly JournalEntry[]): string[] {
  return entries.filter(({ usage }, i) => usage.modelCalls > (entries[i - 1]?.usage.modelCalls ?? 0)).map(({ key }) => key);
}

/** Ends the repeated rollout at the wanted model call, or before it would write or execute something. */
class Asked extends Error {}

function refuse(): never {
  throw new Asked();
}

/** The request of the first model call whose answer is not in the journal. */
async function askedIn(input: RolloutInput, entries: readonly JournalEntry[], step: string, deps: ExplainDeps): Promise<ChatRequest> {
  let [asked, asking]: [ChatRequest | undefined, string] = [undefined, step];
  const chat = async (request: ChatRequest) => {
    request.onText?.('');
    if (asking === step) asked ??= request;
    return refuse();
  };
  const { procedural } = deps;
  const journal = journalWithout(step, entries, input.rolloutId);
  const again: RolloutDeps = {
    ...deps,
    procedural: {
      search: (...given) => procedural.search(...given),
      byFingerprint: (...given) => procedural.byFingerprint(...given),
      versions: (...given) => procedural.versions(...given),
      countNames: (...given) => procedural.countNames(...given),
      countOffers: refuse,
    },
    model: { chat },
    liveText: (key) => void (asking = key),
    sandboxes: { execute: refuse },
    outbox: { put: refuse },
    questions: { ask: refuse },
    workSandboxes: { open: refuse },
    wishes: { request: refuse },
    moveInWorld: refuse,
    // An explanation must not call outside MCP servers.
    outsideTools: { list: async () => ({ tools: [], problems: [] }), call: refuse },
    embedder: new LexicalEmbedder(),
    journal,
    clock: { now: () => 0 },
    givesUp: () => false,
  };
  try {
    const { signal } = new AbortController();
    if (step.startsWith('t.')) await learnFromRollout(input, { ...again, journal, limits: UNLIMITED }, signal);
    else await runRollout(input, again, signal);
  } catch (error) {
    if (!(error instanceof Asked)) throw error;
  }
  if (asked) return asked;
  const message = `The prompt of step "${step}" can't be shown, because memory or settings have changed since that step.`;
  throw new EtudeError('FAILED_PRECONDITION', message);
}

const UNLIMITED = { wallMs: Infinity, modelTokensMax: Infinity };

/** A journal in which one step counts as not done. The entry of the step can still be read, because some decisions need it. */
function journalWithout(step: string, entries: readonly JournalEntry[], rolloutId: string): Journal & LearningJournal {
  const usage = entries[entries.findIndex(({ key }) => key === step) - 1]?.usage ?? Usage.parse({});
  const known = new Map(entries.map((entry) => [entry.key, entry.key === step ? { ...entry, usage } : entry]));
  known.has = (key) => key !== step && known.get(key) !== undefined;
  return { rolloutId, epoch: 1, startedAt: 0, elapsedMs: () => 0, entries: known, append: refuse, finish: refuse };
}

function toolsSection(tools: readonly ChatTool[]): PromptSection {
  const text = tools.map(({ name, description }) => `- ${name}: ${description}`).join('\n');
  return { role: 'system', title: 'Tools', text, tokens: approximateTokens(JSON.stringify(tools)), sources: [] };
}

const HEADING = /^(?:# |## Working Memory)/;
const TAG = /^<(\w+-[0-9a-z]+)[ >]/;

/** Splits a message at its headings. A line between tags is data and never a heading. */
function sectionsOf({ role, content }: ChatMessage): PromptSection[] {
  const parts: string[][] = [[]];
  let tag: string | undefined;
  for (const line of content.split('\n')) {
    if (tag === undefined && HEADING.test(line) && parts.at(-1)!.length > 0) parts.push([]);
    parts.at(-1)!.push(line);
    if (tag === undefined) tag = TAG.exec(line)?.[1];
    else if (line === `</${tag}>`) tag = undefined;
  }
  return parts.map((lines) => {
    const [first = '', text] = [lines[0], lines.join('\n')];
    return { role, title: HEADING.test(first) ? first.replace(/^#+ /, '') : '', text, tokens: approximateTokens(text), sources: [] };
  });
}

/** The outcome of a step, for people. Of runs of hidden cases, only the number is shown. */
interface StepDetail {
  readonly step: string;
  readonly text?: string;
  readonly code?: string;
  readonly tool?: string;
  readonly query?: string;
  readonly runs?: ReadonlyArray<Pick<RunResult, 'exit' | 'stdout' | 'stderr'> & { readonly case: number; readonly valueJson: string }>;
  readonly hiddenRuns?: number;
  readonly records?: ReadonlyArray<Pick<RecalledItem, 'kind' | 'id' | 'title' | 'text'>>;
}

/** The value of a journal entry of any kind. The kind isn't stored, but the fields of the value show it. */
type Value = Partial<ChatResponse & ExecutionResult & { readonly judgement: Judgement; readonly text: string }> | null;

/** Reads a step from the journal of its rollout. @throws EtudeError NOT_FOUND */
export function stepDetail(entries: readonly JournalEntry[], step: string, evaluator: Evaluator): StepDetail {
  const found = entries.find(({ key }) => key === step);
  if (found === undefined)
    throw new EtudeError('NOT_FOUND', `The journal has no step "${step}". The step may not be done yet, or the journal was deleted.`);
  const { value } = found;
  if (Array.isArray(value)) return { step, records: value as RecalledItem[] };
  if (isCall(value)) return { step, tool: value.tool, query: value.query, text: textOf(value.outcome) };
  const { text, toolCalls, runs, judgement } = (value as Value) ?? {};
  if (judgement) return { step, text: `${judgement.reason}\n\n${judgement.feedback}` };
  if (runs) return { step, ...shownRuns(runs, evaluator) };
  if (typeof value === 'string') return { step, code: value };
  const code = codeOfCell(entries, step) ?? codeIn({ text: text ?? '', toolCalls }, evaluator);
  return { step, text: text ?? '', ...(code === undefined ? {} : { code }) };
}

function codeIn({ text, toolCalls }: Pick<ChatResponse, 'text' | 'toolCalls'>, evaluator: Evaluator): string | undefined {
  if (toolCalls === undefined) return extractAnswer(text, rulesOf(evaluator).entryPoint)?.code;
  const calls = readStep({ text, toolCalls }, (name) => name).calls.map(({ tool, args }) =>
    tool === PYTHON && typeof args?.['code'] === 'string' ? args['code'] : `${tool}(${JSON.stringify(args)})`,
  );
  return calls.length === 0 ? undefined : calls.join('\n\n');
}

/** The code of cell "a1.s3.c2": the second call of the answer in "a1.s3.act". */
function codeOfCell(entries: readonly JournalEntry[], step: string): string | undefined {
  const [, of = '', at = ''] = /^(a\d+\.s\d+)\.c(\d+)$/.exec(step) ?? [];
  const said = entries.find(({ key }) => key === `${of}.act`)?.value as ChatResponse | undefined;
  if (said === undefined) return undefined;
  return readStep(said, (name) => name).calls[Number(at) - 1]?.args?.['code'] as string | undefined;
}

function shownRuns(runs: readonly RunResult[], evaluator: Evaluator): Pick<StepDetail, 'runs' | 'hiddenRuns'> {
  const { cases } = rulesOf(evaluator);
  const isHidden = (at: number) => (cases ? cases[at]?.public !== true : evaluator.kind === 'python_tests' && !evaluator.public);
  const shown = runs.flatMap(({ exit, stdout, stderr, value }, at) => {
    const valueJson = value === undefined ? '' : JSON.stringify(value);
    return isHidden(at) ? [] : [{ case: cases ? at + 1 : 0, exit, stdout, stderr, valueJson }];
  });
  return { runs: shown, hiddenRuns: runs.length - shown.length };
}
