import { expect, it, onTestFinished } from 'vitest';
import { redisForFile } from '../../test/rig.js';
import { connectRedis, sentTogether } from './redis.js';

const file = redisForFile();

it('sends together what follows in the same turn', async () => {
  const [redis, observer] = [connectRedis(file.server.url, 'producer'), connectRedis(file.server.url, 'worker')];
  onTestFinished(() => [redis, observer].forEach((connection) => connection.disconnect()));
  await Promise.all([redis.ping(), observer.ping()]);
  const reads = async () => Number(/total_reads_processed:(\d+)/.exec(await observer.info('stats'))?.[1]);
  const readsDuring = async (work: () => Promise<unknown>) => {
    const before = await reads();
    await work();
    // Of these one is the observer's own.
    return (await reads()) - before - 1;
  };
  const later = async () => {
    for (let turns = 0; turns < 20; turns++) await Promise.resolve();
    return redis.set('b', '2');
  };
  const apart = await readsDuring(async () => [await redis.set('a', '1'), await redis.set('b', '2')]);
  expect(apart).toBe(2);
  expect(await readsDuring(() => sentTogether(redis, () => Promise.all([redis.set('a', '1'), later()])))).toBe(1);
  expect(await redis.mget('a', 'b')).toEqual(['1', '2']);
});
