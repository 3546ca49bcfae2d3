import { SCOPE, transitionOf } from '@etude/domain/testing/memory-records';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import type { Memory } from '../src/sqlite-memory.js';
import { openMemory } from '../src/sqlite-memory.js';

/** A process that uses a memory file: `writer PATH NAME COUNT` or `reader PATH`. Prints what it did, a line each. */
const [role, path = '', name = '', count = '0'] = process.argv.slice(2);
const memory = await openMemory({ path, embedder: new LexicalEmbedder(), lockWaitMs: 20_000 });
console.log('ready');
await (role === 'writer' ? write(memory) : read(memory));
memory.close();

async function write({ appliedWrites }: Memory): Promise<void> {
  for (let i = 0; i < Number(count); i += 1) {
    const id = `${name}-${i}`;
    const transition = transitionOf({
      id,
      rolloutId: `rollout-${id}`,
      prompt: `even numbers of ${name} ${i}`,
      feedback: 'x'.repeat(20_000),
    });
    await appliedWrites.apply(SCOPE.tenant, id, { kind: 'transition', transition });
    console.log(id);
  }
}

/** Until it is told to stop: every hit has its record, whole. */
async function read({ episodic }: Memory): Promise<void> {
  const scope = { tenant: SCOPE.tenant, agent: null };
  const stop = new AbortController();
  process.stdin.once('data', () => stop.abort());
  for (let searches = 1; !stop.signal.aborted; searches += 1) {
    for (const hit of await episodic.search(scope, { text: 'even numbers', limit: 20 })) {
      const [found] = await episodic.transitions(scope, hit.sources[0] ?? '');
      if (found?.id !== hit.id || found.feedback.length !== 20_000) throw new Error(`half a record: ${hit.id}`);
    }
    await new Promise(setImmediate);
    if (searches % 10 === 0) console.log(searches);
  }
  process.stdin.destroy();
}
