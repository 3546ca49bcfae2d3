import type { SemanticMemory } from '@etude/domain/ports/memory';
import { isErased } from '@etude/memory/upkeep/erasure-marks';

/** For a run that goes on while somebody is erased: what it learned of them is dropped, and the rest is applied. */
export function factsUnlessErased(semantic: SemanticMemory): SemanticMemory {
  return {
    async applyFacts(tenant, unitId, facts) {
      try {
        return await semantic.applyFacts(tenant, unitId, facts);
      } catch (error) {
        if (isErased(error)) return { added: 0, reinforced: 0 };
        throw error;
      }
    },
    wasApplied: (tenant, unitId) => semantic.wasApplied(tenant, unitId),
    search: (scope, query) => semantic.search(scope, query),
    list: (scope, limit) => semantic.list(scope, limit),
  };
}
