import { EVERYDAY_FACTS } from './everyday-facts.js';
import type { LabelledPair } from './labelled-pair.js';
import { NEAR_TASKS } from './near-tasks.js';
import { REWORDED_TASKS } from './reworded-tasks.js';

/** What a calibration is fitted on where nobody brings pairs of their own. */
export const BUILT_IN_PAIRS: readonly LabelledPair[] = [...NEAR_TASKS, ...REWORDED_TASKS, ...EVERYDAY_FACTS];
