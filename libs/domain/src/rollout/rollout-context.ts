import type { ItemShow, Scope } from '@etude/contracts/memory';
import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import type { StepKind, TaskRecord, TaskSpec } from '@etude/contracts/task';
import { type Tracing, UNTRACED } from '@etude/contracts/tracing';
import type { AgentSettings, AgentSettingsReader, OutsideTools } from '../ports/agent-settings.js';
import type { Clock } from '../ports/clock.js';
import type { Journal, Questions } from '../ports/journal.js';
import type { EpisodicMemory, MemoryOutbox, ProceduralMemory, SemanticMemory } from '../ports/memory.js';
import type { ChatModel, ChatRequest, ChatResponse, Embedder } from '../ports/model.js';
import type { ProofChecker } from '../ports/verification.js';
import type { Sandboxes, WorkSandboxes } from '../ports/sandboxes.js';
import type { SkillWishes } from '../tools/tool-definition.js';
import type { MoveInWorld } from '../tools/world-tools.js';
import type { Attempt, RecordOrigin } from './attempt-record.js';
import { DurableSteps, type StepLimits, type StepOutcome } from './durable-steps.js';
import { journaledShows, type Withholding } from './recall-step.js';
import type { PromptTask } from './prompts.js';
import type { PromptBudgets } from './step-prompts.js';
import { hash } from 'node:crypto';
import { rulesOf } from '../evaluation/evaluators.js';

export interface RolloutInput {
  readonly task: Pick<TaskRecord, 'id' | 'tenant' | 'spec'>;
  readonly rolloutId: string;
}

export interface RolloutDeps {
  readonly model: ChatModel;
  readonly sandboxes: Sandboxes;
  readonly workSandboxes: WorkSandboxes;
  readonly questions: Questions;
  readonly outsideTools: OutsideTools;
  readonly moveInWorld: MoveInWorld;
  readonly wishes: SkillWishes;
  readonly embedder: Embedder;
  readonly episodic: Pick<EpisodicMemory, 'search'>;
  readonly semantic: Pick<SemanticMemory, 'search' | 'about'>;
  readonly procedural: Pick<ProceduralMemory, 'search' | 'byFingerprint' | 'versions' | 'countOffers' | 'countNames'>;
  readonly settings: AgentSettingsReader;
  /** Checks proofs. A skill with code is run or shown only with a valid proof. */
  readonly checker: ProofChecker;
  /** Returns the sandbox template that has these packages. @throws EtudeError FAILED_PRECONDITION if there is none */
  readonly templateFor: (packages: readonly string[]) => string | undefined;
  readonly outbox: MemoryOutbox;
  readonly journal: Journal;
  readonly clock: Clock;
  /** If absent, every recalled item is shown. */
  readonly withholding?: Withholding;
  /** If absent, `PROMPT_BUDGETS` are used. */
  readonly promptBudgets?: PromptBudgets;
  /** Called with each part of a model's answer as it arrives, for watchers of the task. A lost part is no error. */
  readonly liveText?: (step: string, text: string) => void;
  readonly tracing?: Tracing;
  /** Whether the task fails with this error, because the queue won't retry the job. */
  readonly givesUp: (error: unknown) => boolean;
}

/** @template Deps the ports of the rollout, or of its learning */
export interface RolloutContext<Deps = RolloutDeps> extends RecordOrigin {
  readonly tenant: string;
  readonly deps: Deps;
  readonly steps: DurableSteps;
  readonly tracing: Tracing;
  readonly signal: AbortSignal;
  /** Reads the agent's settings once, at the first call. Decisions made from them are journaled. */
  readonly agentSettings: () => Promise<AgentSettings>;
  readonly settings: () => Promise<ProceduralMemorySettings>;
  readonly promptTask: PromptTask;
  /** The attempts so far. Each attempt is added as soon as it is evaluated, so that it is kept if the rollout stops. */
  readonly attempts: Attempt[];
  /** The items that were shown to the first attempt or are withheld from the rollout. Empty if no item was recalled or withholding is off. */
  readonly shows: ItemShow[];
  episodeKept: boolean;
}

type ContextDeps = Pick<RolloutDeps, 'settings' | 'clock' | 'tracing'> & { readonly journal: Omit<Journal, 'finish'> };

export function contextOf<Deps extends ContextDeps>(
  { task, rolloutId }: RolloutInput,
  deps: Deps,
  signal: AbortSignal,
  limits: StepLimits = task.spec.limits,
): RolloutContext<Deps> {
  const { spec, tenant } = task;
  const fingerprint = fingerprintOf(spec);
  const scope: Scope = { tenant, agent: spec.agent, user: spec.user ?? null };
  let asked: Promise<AgentSettings> | undefined;
  const agentSettings = () => (asked ??= deps.settings.get(tenant, spec.agent));
  const { tracing = UNTRACED } = deps;
  const steps = new DurableSteps(deps.journal, deps.clock, limits, signal, tracing);
  return {
    taskId: task.id,
    rolloutId,
    tenant,
    spec,
    scope,
    agentSettings,
    settings: async () => (await agentSettings()).settings,
    fingerprint,
    promptTask: { spec, boundary: fingerprint.slice(0, 8) },
    attempts: [],
    deps,
    steps,
    tracing,
    shows: journaledShows(steps),
    episodeKept: false,
    signal,
  };
}

export type ModelAnswer = Pick<ChatResponse, 'text' | 'toolCalls' | 'model' | 'scripted' | 'inputTokens' | 'outputTokens' | 'costUsd'>;

type AskingContext = Pick<RolloutContext<Pick<RolloutDeps, 'model' | 'liveText'>>, 'steps' | 'deps' | 'signal' | 'scope'>;

export function askModel(context: AskingContext, key: string, kind: StepKind, request: () => ChatRequest): Promise<ModelAnswer> {
  return context.steps.run(key, kind, () => modelStep(context, key, request));
}

export async function modelStep(
  { deps, signal, scope: { tenant, agent } }: AskingContext,
  key: string,
  request: () => ChatRequest,
): Promise<StepOutcome<ModelAnswer>> {
  const { liveText } = deps;
  // A key ends with the purpose of the call. Keys of learning begin with "t.".
  const purpose = key.startsWith('t.') ? 'learn' : key.slice(key.lastIndexOf('.') + 1);
  const account = { tenant, agent, purpose };
  const asked: ChatRequest = { ...request(), account, ...(liveText && { onText: (part) => liveText(key, part) }) };
  const { text, toolCalls, finishReason, model, scripted, inputTokens, outputTokens, costUsd } = await deps.model.chat(asked, signal);
  const tokens = { inputTokens, outputTokens, costUsd };
  return {
    value: { text, ...(toolCalls === undefined ? {} : { toolCalls }), model, scripted, ...tokens },
    summary: `${model} answered ${text.length} characters${calledBy(toolCalls)}${finishReason === 'length' ? ', cut off at its limit' : ''}`,
    usage: { modelCalls: 1, ...tokens },
    scripted,
  };
}

function calledBy(calls: ChatResponse['toolCalls'] = []): string {
  return calls.length === 0 ? '' : ` and called ${calls.map(({ name }) => name).join(', ')}`;
}

/**
 * The sha256, in hex, of the prompt and of all public data of the evaluator. Two tasks with the same fingerprint count as the same task.
 *
 * White space at line ends, blank lines and the style of line breaks are ignored. Hidden cases are ignored too, because they may differ when a task
 * is submitted again. Case and inner spacing make a difference: "print A" is not "print a".
 */
export function fingerprintOf({ prompt, evaluator }: Pick<TaskSpec, 'prompt' | 'evaluator'>): string {
  const { entryPoint = '', visible } = rulesOf(evaluator);
  const parts = [normalised(prompt), evaluator.kind, entryPoint, visible];
  return hash('sha256', JSON.stringify(parts));
}

function normalised(text: string): string {
  const lines = text
    .normalize('NFC')
    .split(/\r\n|\r|\n/)
    .map((line) => line.trimEnd());
  return lines
    .filter((line) => line !== '')
    .join('\n')
    .trim();
}
