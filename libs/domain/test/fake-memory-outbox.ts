import type { MemoryWrite } from '@etude/contracts/memory';
import type { MemoryOutbox } from '../src/ports/memory.js';

/** Keeps the first write under each id, in order. */
export class FakeMemoryOutbox implements MemoryOutbox {
  readonly writes = new Map<string, MemoryWrite>();

  put(tenant: string, writeId: string, write: MemoryWrite): Promise<void> {
    const key = `${tenant}/${writeId}`;
    if (!this.writes.has(key)) this.writes.set(key, structuredClone(write));
    return Promise.resolve();
  }

  /** The writes of one kind, in the order in which they came. */
  of<Kind extends MemoryWrite['kind']>(kind: Kind): Array<Extract<MemoryWrite, { kind: Kind }>> {
    return [...this.writes.values()].filter((write): write is Extract<MemoryWrite, { kind: Kind }> => write.kind === kind);
  }
}
