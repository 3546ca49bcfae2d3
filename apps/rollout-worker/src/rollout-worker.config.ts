import { modelConfig } from '@etude/model/model-config';
import { baseConfig } from '@etude/platform/config';
import { z } from 'zod';

export const rolloutWorkerConfig = baseConfig.extend(modelConfig.shape).extend({
  /** SQLite file of memory, the same for every service. */
  ETUDE_MEMORY_PATH: z.string({ error: 'the path of the SQLite file that holds memory, the same for every service' }).min(1),
  /** Rollouts under way at once in this process. They mostly wait for the model. */
  ETUDE_ROLLOUT_CONCURRENCY: z.coerce.number().int().min(1).max(1_000).default(8),
});
export type RolloutWorkerConfig = z.infer<typeof rolloutWorkerConfig>;
