import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { Memory } from '@etude/memory/memory';

/** Codes for a memory of another embedder or another version of Etude. Retries can't help; the operator must decide. */
const FATAL = new Set(['MEMORY_VERSION', 'EMBEDDING_LENGTH_WRONG']);

/** Opens memory once, and again after a failure, for example after a full disk or a late mount. */
export class MemoryAccess {
  #opening: Promise<Memory> | null = null;

  constructor(private readonly openStore: () => Promise<Memory>) {}

  /** @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_VERSION, EMBEDDING_LENGTH_WRONG */
  open(): Promise<Memory> {
    this.#opening ??= this.openStore().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  /** Opens memory at start. Errors that retries can't heal end the process; others show as NOT_SERVING. */
  async openAtStart(): Promise<void> {
    try {
      await this.open();
    } catch (error) {
      if (FATAL.has(errorCode(error))) throw error;
    }
  }

  /** @throws EtudeError MEMORY_UNAVAILABLE */
  async check(): Promise<void> {
    const memory = await this.open();
    try {
      await memory.check();
    } catch (error) {
      await this.close();
      throw new EtudeError('MEMORY_UNAVAILABLE', error instanceof Error ? error.message : String(error), {}, { cause: error });
    }
  }

  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = null;
    const memory = await opening?.catch(() => null);
    await memory?.close();
  }
}
