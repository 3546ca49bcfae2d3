import { afterEach, expect, it } from 'vitest';
import { ControllerChannels } from './controller-client.js';

const ONE = '127.0.0.1:1';
const nobody: ReadonlySet<string> = new Set();

let now = 0;
const channels = new ControllerChannels('a-token-of-the-inside', () => now);
afterEach(() => channels.close());

it('keeps the channel to a controller that is missing for a moment, over which calls are under way', () => {
  const client = channels.to(ONE);
  channels.keepOnly(nobody);
  now += 59_000;
  channels.keepOnly(nobody);
  expect(channels.to(ONE)).toBe(client);
  channels.keepOnly(new Set([ONE]));
  now += 59_000;
  channels.keepOnly(nobody);
  expect(channels.to(ONE)).toBe(client);
});

it('drops the channel to one that stays away', () => {
  const client = channels.to(ONE);
  channels.keepOnly(nobody);
  now += 60_000;
  channels.keepOnly(nobody);
  expect(channels.to(ONE)).not.toBe(client);
});
