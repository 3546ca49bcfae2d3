import { Usage } from '@etude/contracts/task';
import { describe, expect, it } from 'vitest';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { never, SPEC, startProducer } from '../../test/rig.js';
import { readEvents } from './events.js';
import type { StoredEvent } from './events.js';
import { openJournal } from './journal.js';
import type { RedisJournal } from './journal.js';

const file = redisForFile();

async function start() {
  const { tasks, redis, keys } = startProducer(file.url, file.prefix());
  const { record } = await tasks.submit('acme', SPEC, '');
  const journal = (await openJournal(redis, keys, { tenant: 'acme', taskId: record.id, rolloutId: `${record.id}-r1` })) as RedisJournal;
  const read = (afterId = '', signal = never()) => readEvents(redis, keys, 'acme', record.id, afterId, signal);
  const step = (n: number) =>
    journal.append({ key: `a1.s${n}`, value: n, usage: Usage.parse({}) }, [{ type: 'attempt_started', attempt: n }]);
  const finish = () => journal.finish({ state: 'succeeded', stopReason: 'solved', result: null, usage: Usage.parse({}), error: null });
  return { tasks, redis, keys, record, journal, read, step, finish };
}

const states = (events: readonly StoredEvent[]) => events.map(({ event }) => (event.type === 'state' ? event.state : event.type));

describe('reading events', () => {
  it('resumes after any event without missing or repeating one', async () => {
    const { read, step, finish } = await start();
    for (let n = 1; n <= 250; n++) await step(n);
    await finish();
    const all = await Array.fromAsync(read());
    for (const from of [0, 1, 99, 100, 101, 200, all.length - 2, all.length - 1]) {
      expect((await Array.fromAsync(read(all[from]?.id))).map(({ id }) => id)).toEqual(all.slice(from + 1).map(({ id }) => id));
    }
  });

  it('continues after the end of a redriven run', async () => {
    const { read, tasks, record, redis, keys } = await start();
    await tasks.markFailed('acme', record.id, { code: 'INTERNAL', message: 'x' }, Date.now());
    const [end] = (await Array.fromAsync(read())).slice(-1);
    await tasks.requeue('acme', record.id);
    const fromStart = Array.fromAsync(read());
    const fromEnd = Array.fromAsync(read(end?.id));
    const again = await openJournal(redis, keys, { tenant: 'acme', taskId: record.id, rolloutId: `${record.id}-r1` });
    await again?.finish({ state: 'failed', stopReason: 'attempts', result: null, usage: Usage.parse({}), error: null });
    expect(states(await fromStart)).toEqual(['queued', 'running', 'failed', 'queued', 'running', 'failed', 'finished']);
    expect(states(await fromEnd)).toEqual(['queued', 'running', 'failed', 'finished']);
  });
});
