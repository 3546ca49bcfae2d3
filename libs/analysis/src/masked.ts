import type { MemoryOutbox } from '@etude/domain/ports/memory';
import type { SkillWishes } from '@etude/domain/tools/tool-definition';

/** Loads the rules only when the first value is masked, because they take 10 MiB of memory. */
const masked = async <T>(value: T): Promise<T> => (await import('./find-secrets.js')).maskSecretsIn(value);

/** Masks secrets in records that services write to memory by themselves: attempts, episodes, learned skills and their uses. */
export function maskedOutbox(outbox: MemoryOutbox): MemoryOutbox {
  return {
    put: async (tenant, writeId, write) => outbox.put(tenant, writeId, await masked(write)),
  };
}

/** Masks secrets in the words of wishes, which models and other readers see. */
export function maskedWishes(wishes: SkillWishes): SkillWishes {
  return { request: async (reader, wish) => wishes.request(reader, await masked(wish)) };
}
