import { memoryConfig, requireMemory } from '@etude/memory/memory-config';
import { modelConfig } from '@etude/model/model-config';
import { baseConfig } from '@etude/platform/config';
import { publicKeysConfig } from '@etude/platform/proof-keys';
import { sandboxPackagesConfig } from '@etude/platform/sandbox-packages';
import { agentSettingsConfig } from '@etude/queue/agents/agent-settings-config';
import { z } from 'zod';

export const rolloutWorkerConfig = requireMemory(
  baseConfig
    .extend(modelConfig.shape)
    .extend(memoryConfig.shape)
    .extend(agentSettingsConfig.shape)
    .extend(publicKeysConfig.shape)
    .extend(sandboxPackagesConfig.shape)
    .extend({
      /** Rollouts under way at once in this process. They mostly wait for the model. */
      ETUDE_ROLLOUT_CONCURRENCY: z.coerce.number().int().min(1).max(1_000).default(8),
    }),
);
export type RolloutWorkerConfig = z.infer<typeof rolloutWorkerConfig>;
