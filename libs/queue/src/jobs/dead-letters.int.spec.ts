import { RolloutRun } from '@etude/contracts/queues';
import { until } from '@etude/test-support/until';
import { expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { DeadLetters } from './dead-letters.js';

const startQueue = queueForFile();

it('counts jobs that wait, have a priority or are due', async () => {
  const { producer, tasks } = startQueue();
  const add = (id: string, options: object) =>
    producer.add(RolloutRun, { v: 1, tenant: 'acme', taskId: `t0000000${id}`, rolloutId: `t0000000${id}-r1` }, options);
  await add('1', {});
  await add('2', { priority: 3 });
  await add('3', { delayMs: 60_000 });
  const counts = async () => (await new DeadLetters(producer, tasks).queues()).find(({ name }) => name === RolloutRun.name);
  expect(await counts()).toMatchObject({ waiting: 2, active: 0, delayed: 1, due: 0 });
  await add('4', { delayMs: 1 });
  await until(async () => (await counts())?.due === 1, { what: 'a due job' });
});
