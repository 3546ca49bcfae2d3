import { expect, it } from 'vitest';
import { readHostUserRange } from './host-users.js';

it('reads a range as /etc/subuid has it', () => {
  expect(readHostUserRange('100000:65536')).toEqual({ firstUid: 100_000, firstGid: 100_000, count: 65_536 });
});

it.each(['', '100000', '100000-165535', '0:10', '100000:0', '2147483648:1', '2147483600:100', 'a:b'])('refuses %j as a range', (text) => {
  expect(readHostUserRange(text)).toBeUndefined();
});
