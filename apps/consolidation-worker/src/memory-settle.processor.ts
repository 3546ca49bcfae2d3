import { errorCode } from '@etude/contracts/errors';
import type { MemorySettleJob } from '@etude/contracts/queues';
import type { AgentSettingsReader } from '@etude/domain/ports/agent-settings';
import type { ChatModel } from '@etude/domain/ports/model';
import type { Memory } from '@etude/memory/memory';
import type { JobHandler } from '@etude/queue/jobs/consumer';
import type { SettlingStore } from '@etude/queue/memory/settling-store';
import type { QueueLogger } from '@etude/queue/redis/redis';

export interface MemorySettleDeps {
  readonly memory: Pick<Memory, 'semantic' | 'conversations' | 'store'>;
  readonly model: ChatModel;
  readonly settling: SettlingStore;
  readonly settings: AgentSettingsReader;
  readonly callsPerDay: number;
  readonly logger: QueueLogger;
}

/** Wait after another worker was found at work, and after the model failed. */
const BUSY_WAIT_MS = 15_000;
const FAILURE_WAIT_MS = 300_000;

/** Turns that earn as much of the budget as one stored fact. Few of them tell one. */
const TURNS_PER_FACT = 4;

/**
 * Reads the unread turns of a tenant's conversations for facts, then compares its unsettled facts. If the model fails, the facts stay unsettled and another job tries again later, so that an
 * outage leaves no dead letters.
 */
export function memorySettleProcessor(deps: MemorySettleDeps): JobHandler<typeof MemorySettleJob.payload, typeof MemorySettleJob.result> {
  const { memory, model, settling, settings, callsPerDay, logger } = deps;
  const count = (tenant: string, kind: 'fact' | 'turn') => memory.store.count({ tenant }, 'semantic', { kinds: [kind] });
  const earning = async (tenant: string) => (await count(tenant, 'fact')) + Math.ceil((await count(tenant, 'turn')) / TURNS_PER_FACT);
  return async ({ tenant }, { jobId, signal }) => {
    if (callsPerDay === 0) return { modelCalls: 0, left: await memory.semantic.unsettled(tenant), failure: null };
    if (!(await settling.take(tenant, jobId))) {
      await settling.request(tenant, BUSY_WAIT_MS);
      return { modelCalls: 0, left: await memory.semantic.unsettled(tenant), failure: null };
    }
    let failure: string | null = null;
    try {
      const budget = {
        left: async () => settling.left(tenant, await earning(tenant), callsPerDay),
        charge: (promptTokens: number) => settling.charge(tenant, promptTokens),
      };
      const isOn = async (agent: string) => (await settings.get(tenant, agent)).settings.settleFacts;
      const read = await memory.conversations.read(tenant, { model, budget, isOn, signal });
      if (read.modelCalls > 0) logger.info({ tenant, ...read }, 'conversations were read for facts');
      const { modelCalls, left, decided } = await memory.semantic.settle(tenant, { model, budget, isOn, signal });
      logger.info({ tenant, modelCalls, left, ...decided }, 'facts were compared');
      return { modelCalls: read.modelCalls + modelCalls, left, failure };
    } catch (error) {
      if (!errorCode(error).startsWith('MODEL_')) throw error;
      failure = `${errorCode(error)}: ${(error as Error).message}`;
      logger.warn({ tenant, failure }, 'facts stay unsettled: the model failed');
      await settling.request(tenant, FAILURE_WAIT_MS);
      return { modelCalls: 0, left: await memory.semantic.unsettled(tenant), failure };
    } finally {
      await settling.end(tenant, jobId, failure);
    }
  };
}

/** Has every tenant's turns read and facts compared, since a job that was lost with its process is not added again by anybody else. */
export async function settleAll({ memory, settling }: Pick<MemorySettleDeps, 'memory' | 'settling'>): Promise<void> {
  for (const tenant of await memory.store.tenants()) {
    const isWaiting = (await memory.semantic.unsettled(tenant)) > 0 || (await memory.conversations.unread(tenant)) > 0;
    if (isWaiting) await settling.request(tenant);
  }
}
