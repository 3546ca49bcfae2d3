import type { MemoryOutbox } from '@etude/domain/ports/memory';

/** Masks secrets in records that services write to memory by themselves: attempts, episodes, learned skills and their uses. */
export function maskedOutbox(outbox: MemoryOutbox): MemoryOutbox {
  return {
    async put(tenant, writeId, write) {
      // Loaded by the first write, because the rules cost 10 MiB of memory.
      const { maskSecretsIn } = await import('./find-secrets.js');
      await outbox.put(tenant, writeId, maskSecretsIn(write));
    },
  };
}
