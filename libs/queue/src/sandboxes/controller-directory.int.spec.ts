import { describe, expect, it } from 'vitest';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { startProducer } from '../../test/rig.js';
import { ControllerDirectory } from './controller-directory.js';

const file = redisForFile();
const announcement = (controllerId: string, sessions = 0) => ({ controllerId, address: '127.0.0.1:7000', sessions, sessionsMax: 8 });

function start() {
  const { redis, keys } = startProducer(file.url, file.prefix());
  return { redis, keys, directory: new ControllerDirectory(redis, keys) };
}

describe('the directory of controllers', () => {
  it('counts a controller as dead without heartbeats, and at once after its shutdown', async () => {
    const { directory, redis, keys } = start();
    await directory.announce(announcement('silent'));
    await directory.announce(announcement('silent', 3));
    expect(await directory.live()).toEqual([announcement('silent', 3)]);
    await redis.zadd(keys.controllersSeen, 'XX', Date.now() - 6_000, 'silent');
    expect(await directory.live()).toEqual([]);
    await directory.announce(announcement('left'));
    await directory.withdraw('left');
    expect(await directory.live()).toEqual([]);
    expect(await directory.dead()).toEqual([
      { controllerId: 'left', left: true },
      { controllerId: 'silent', left: false },
    ]);
  });

  it('keeps a dead controller until another has taken its sessions over', async () => {
    const { directory, redis, keys } = start();
    await directory.announce(announcement('a'));
    await directory.forget('a');
    expect(await directory.live()).toHaveLength(1);
    await directory.withdraw('a');
    await redis.sadd(keys.heldSandboxes('a'), 'acme/s1');
    await directory.forget('a');
    expect(await directory.dead()).toHaveLength(1);
    await redis.del(keys.heldSandboxes('a'));
    await directory.forget('a');
    expect(await directory.dead()).toEqual([]);
    expect(await redis.hlen(keys.controllers)).toBe(0);
  });
});
