import { rolloutIdOf } from '@etude/contracts/ids';
import { TaskSpec, Usage } from '@etude/contracts/task';
import { openJournal } from '@etude/queue/tasks/journal';
import { Producer } from '@etude/queue/jobs/producer';
import { TaskStore } from '@etude/queue/tasks/task-store';
import { bareWrites } from './bare-redis.js';
import { percentile, repeat } from './figures.js';

const STEPS = 1_000;
const VALUE = { text: 'x'.repeat(1_000) };

/** p95 in ms of one journaled step and of one bare write of the same size, both with fsync on every write. */
export async function journalFigures(redisUrl: string): Promise<{ step: number; bare: number }> {
  const producer = new Producer(redisUrl, 'bench');
  try {
    const spec = TaskSpec.parse({ prompt: 'journal', evaluator: { kind: 'none' } });
    const { record } = await new TaskStore(producer).submit('bench', spec, '');
    const journal = await openJournal(producer.redis, producer.keys, {
      tenant: 'bench',
      taskId: record.id,
      rolloutId: rolloutIdOf(record.id),
    });
    if (!journal) throw new Error('the bench task has no journal');
    const usage = Usage.parse({});
    const event = {
      type: 'step',
      step: 'a1.draft',
      attempt: 1,
      kind: 'draft',
      summary: 'bench',
      durationMs: 1,
      usage,
      scripted: true,
    } as const;
    const step = (i: number) => journal.append({ key: `k${i}`, value: VALUE, usage }, [event]);
    // In turns, so that changes of the machine's speed affect both kinds of writes.
    const steps: number[] = [];
    const bares: number[] = [];
    for (let round = 0; round < 10; round++) {
      steps.push(...(await repeat(STEPS / 10, (i) => step(round * STEPS + i))));
      bares.push(...(await bareWrites(redisUrl, STEPS / 10, JSON.stringify(VALUE))));
    }
    return { step: percentile(steps, 95), bare: percentile(bares, 95) };
  } finally {
    await producer.close();
  }
}
