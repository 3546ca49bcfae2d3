import type { UpkeepStore } from '@etude/queue/memory/upkeep-store';
import type { SkillDeps } from '../registration/skill-registration.js';

/** What handlers of memory work with. */
export interface MemoryDeps extends Pick<SkillDeps, 'memory' | 'settings' | 'registration' | 'templateFor'> {
  readonly upkeep: UpkeepStore;
}
