import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { Tracing } from '@etude/contracts/tracing';
import type { Reranker } from '@etude/domain/ports/model';
import type { Memory } from '@etude/memory/memory';
import type { MemoryDeps } from '@etude/memory/open-memory';
import { chatModelFrom, DEFAULT_BASE_URL } from '@etude/model/model-config';
import { rerankServerFrom } from '@etude/model/rerank-server';
import type { GatewayConfig } from '../config/gateway-config.js';

/** Codes for a memory that another embedder or another version of Etude has written. Retries can't help; the operator must decide. */
const FATAL = new Set(['MEMORY_VERSION', 'EMBEDDING_LENGTH_WRONG']);

/** Opens memory once. After a failure, such as a full disk or a late mount, the next call opens it again. */
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

  /** Opens memory at start. Throws only errors that retries can't heal. After other errors, health is NOT_SERVING. */
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

export function rerankersOf(
  config: GatewayConfig,
  log: NonNullable<MemoryDeps['log']>,
  tracing: Tracing,
): Pick<MemoryDeps, 'chatModel' | 'reranker'> {
  const server = rerankServerFrom(config);
  const isModelSet = config.OPENAI_API_KEY !== undefined || config.OPENAI_BASE_URL !== DEFAULT_BASE_URL;
  return {
    ...(isModelSet ? { chatModel: chatModelFrom(config, tracing) } : {}),
    ...(server === null ? {} : { reranker: observed(server, log, tracing) }),
  };
}

/** Traces the calls, and logs each failure. A search hides the failure, because its hits then keep their own order. */
export const observed = (reranker: Reranker, log: NonNullable<MemoryDeps['log']>, tracing: Tracing): Reranker => ({
  rank: (query, texts, signal) =>
    tracing
      .span('rerank', { kind: 'client' }, () => reranker.rank(query, texts, signal))
      .catch((error: unknown) => {
        log('the rerank server failed, so the hits keep the order of the search', {
          code: errorCode(error),
          reason: (error as Error).message,
        });
        throw error;
      }),
});
