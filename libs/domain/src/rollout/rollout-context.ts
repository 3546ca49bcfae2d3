import type { Scope } from '@etude/contracts/memory';
import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import type { StepKind, TaskRecord } from '@etude/contracts/task';
import { fingerprintOf } from '../recall/fingerprint.js';
import type { AgentSettingsReader } from '../ports/agent-settings.js';
import type { Clock } from '../ports/clock.js';
import type { Journal } from '../ports/journal.js';
import type { EpisodicMemory, MemoryOutbox, ProceduralMemory, SemanticMemory } from '../ports/memory.js';
import type { ChatModel, ChatRequest } from '../ports/model.js';
import type { ProofChecker } from '../ports/proof-signer.js';
import type { Sandboxes } from '../ports/sandboxes.js';
import type { Attempt, RecordOrigin } from './attempt-record.js';
import { DurableSteps } from './durable-steps.js';
import type { PromptTask } from './prompt-sections.js';

export interface RolloutInput {
  readonly task: Pick<TaskRecord, 'id' | 'tenant' | 'spec'>;
  readonly rolloutId: string;
}

export interface RolloutDeps {
  readonly model: ChatModel;
  readonly sandboxes: Sandboxes;
  readonly episodic: Pick<EpisodicMemory, 'search'>;
  readonly semantic: Pick<SemanticMemory, 'search'>;
  readonly procedural: Pick<ProceduralMemory, 'search' | 'byFingerprint' | 'versions' | 'countOffers' | 'countNames'>;
  /** What holds for the task's agent. */
  readonly settings: AgentSettingsReader;
  /** A skill without a proof that it takes is neither run nor shown. */
  readonly checker: ProofChecker;
  /** Which kind of sandbox has these packages. @throws EtudeError FAILED_PRECONDITION where none has */
  readonly templateFor: (packages: readonly string[]) => string | undefined;
  readonly outbox: MemoryOutbox;
  readonly journal: Journal;
  readonly clock: Clock;
  /** Whether nobody will try again after this error, so that the task has to end with it. */
  readonly givesUp: (error: unknown) => boolean;
}

/** What every step of one rollout needs. */
export interface RolloutContext extends RecordOrigin {
  readonly tenant: string;
  readonly deps: RolloutDeps;
  readonly steps: DurableSteps;
  readonly signal: AbortSignal;
  /** Of the agent, as they are when they are asked for first; what was decided by them is journaled. */
  readonly settings: () => Promise<ProceduralMemorySettings>;
  readonly promptTask: PromptTask;
  /** Filled as they are evaluated and recorded, so that a stop in the middle of one keeps those before it. */
  readonly attempts: Attempt[];
}

export function contextOf({ task, rolloutId }: RolloutInput, deps: RolloutDeps, signal: AbortSignal): RolloutContext {
  const { spec, tenant } = task;
  const fingerprint = fingerprintOf(spec);
  const scope: Scope = { tenant, agent: spec.agent, user: spec.user ?? null };
  return {
    taskId: task.id,
    rolloutId,
    tenant,
    spec,
    scope,
    settings: settingsOf(scope, deps),
    fingerprint,
    promptTask: { spec, boundary: fingerprint.slice(0, 8) },
    attempts: [],
    deps,
    steps: new DurableSteps(deps.journal, deps.clock, spec.limits, signal),
    signal,
  };
}

function settingsOf({ tenant, agent }: Scope, deps: RolloutDeps): RolloutContext['settings'] {
  let asked: Promise<ProceduralMemorySettings> | undefined;
  return () => (asked ??= deps.settings.get(tenant, agent).then(({ settings }) => settings));
}

/** What is kept of a model's answer. */
export interface ModelAnswer {
  readonly text: string;
  readonly model: string;
  readonly scripted: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
}

/** One journaled model call: once answered it is never made again. */
export function askModel(
  { steps, deps, signal }: RolloutContext,
  key: string,
  kind: StepKind,
  request: () => ChatRequest,
): Promise<ModelAnswer> {
  return steps.run(key, kind, async () => {
    const { text, finishReason, model, scripted, inputTokens, outputTokens, costUsd } = await deps.model.chat(request(), signal);
    const tokens = { inputTokens, outputTokens, costUsd };
    return {
      value: { text, model, scripted, ...tokens },
      summary: `${model} answered ${text.length} characters${finishReason === 'length' ? ', cut off at its limit' : ''}`,
      usage: { modelCalls: 1, ...tokens },
      scripted,
    };
  });
}
