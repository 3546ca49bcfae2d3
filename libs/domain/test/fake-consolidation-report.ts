import type { ConsolidatedAgent } from '@etude/contracts/memory-upkeep';
import type { ConsolidationReport } from '../src/ports/consolidation-units.js';
import type { ChatResponse } from '../src/ports/model.js';

/** Keeps the lines and answers of one run. */
export class FakeConsolidationReport implements ConsolidationReport {
  readonly lines = new Map<string, ConsolidatedAgent>();
  readonly answers = new Map<string, ChatResponse>();

  line = async (agent: string) => structuredClone(this.lines.get(agent) ?? null);
  putLine = async (line: ConsolidatedAgent) => void this.lines.set(line.agent, structuredClone(line));
  answer = async (key: string) => structuredClone(this.answers.get(key) ?? null);
  putAnswer = async (key: string, answer: ChatResponse) => void this.answers.set(key, structuredClone(answer));
  progress = async () => {};
}
