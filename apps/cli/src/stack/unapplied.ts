import { resolve } from 'node:path';
import { type ModelSettings, modelName, modelUrl } from './model-place.js';
import type { MemoryAdapter, SandboxDriver } from './stack-options.js';
import type { StackState } from './stack-state.js';

/** What `up` was told in so many words; what it takes by default is left out. */
export interface AskedFor {
  readonly scripted?: string;
  readonly rolloutWorkers?: number;
  readonly concurrency?: number;
  readonly sandbox?: SandboxDriver;
  readonly memory?: MemoryAdapter;
}

const differs = (value: number | string | undefined, is: number | string | null) => value !== undefined && is !== null && value !== is;

/** What of it a stack that runs already does not do, as it was asked for. What a stack of an earlier version does not say of itself counts as done. */
export function unapplied(state: StackState, asked: AskedFor, settings: ModelSettings): string[] {
  const { scripted, sandbox, memory, rolloutWorkers, concurrency } = asked;
  return [
    ...(scripted === undefined ? otherModel(state, settings) : []),
    ...(scripted !== undefined && resolve(scripted) !== state.scripted ? [`--scripted ${scripted}`] : []),
    ...(differs(sandbox, state.sandbox.driver) ? [`--sandbox ${sandbox}`] : []),
    ...(differs(memory, state.memory === 'sqlite' ? 'sqlite' : 'qdrant') ? [`--memory ${memory}`] : []),
    ...(differs(rolloutWorkers, state.rolloutWorkers) ? [`--rollout-workers ${rolloutWorkers}`] : []),
    ...(differs(concurrency, state.concurrency) ? [`--concurrency ${concurrency}`] : []),
  ];
}

/** Of the variables that name a model, those that are set and that it was not started with. */
function otherModel(state: StackState, settings: ModelSettings): string[] {
  const { OPENAI_MODEL, OPENAI_BASE_URL } = settings;
  const isOther = state.scripted !== null || (state.modelUrl !== null && state.modelUrl !== modelUrl(settings));
  return [
    ...(OPENAI_BASE_URL && isOther ? [`OPENAI_BASE_URL ${modelUrl(settings) ?? ''}`] : []),
    ...(OPENAI_MODEL && state.model !== modelName(settings) ? [`OPENAI_MODEL ${OPENAI_MODEL}`] : []),
  ];
}
