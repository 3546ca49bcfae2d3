import type { ConsolidatedAgent, ConsolidationCounts } from '@etude/contracts/memory-upkeep';
import type { ChatResponse } from './model.js';

/**
 * What a consolidation run keeps, so that another worker continues it: one line per agent, and the model's answers until the run ends.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE
 */
export interface ConsolidationReport {
  line(agent: string): Promise<ConsolidatedAgent | null>;
  putLine(line: ConsolidatedAgent): Promise<void>;
  /** @param key digest of agent and request */
  answer(key: string): Promise<ChatResponse | null>;
  putAnswer(key: string, answer: ChatResponse): Promise<void>;
  /** Shows how far the run is. */
  progress(counts: ConsolidationCounts): Promise<void>;
}
