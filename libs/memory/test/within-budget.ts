import type { ChatModel } from '@etude/domain/ports/model';
import type { SettlingDeps } from '../src/layers/fact-settling.js';

/** The dependencies of settling and reading, with a budget of `calls` calls of the model. */
export function withinBudget(model: ChatModel, { calls = 99, isOn = true } = {}): SettlingDeps {
  let left = calls;
  const budget = { left: async () => ({ calls: left, promptTokens: 100_000 }), charge: async () => void (left -= 1) };
  return { model, budget, isOn: async () => isOn, signal: new AbortController().signal };
}
