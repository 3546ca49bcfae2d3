import { expect, it } from 'vitest';
import { parseRedisUrl } from './redis-url.js';

it('reads one server, sentinels and a cluster', () => {
  expect(parseRedisUrl('redis://127.0.0.1')).toMatchObject({
    kind: 'single',
    tls: false,
    hosts: [{ host: '127.0.0.1', port: 6_379 }],
    name: '0',
  });
  expect(parseRedisUrl('rediss://u:p%40s@[::1]:7/3?ca=/ca.pem')).toEqual({
    kind: 'single',
    tls: true,
    hosts: [{ host: '::1', port: 7 }],
    username: 'u',
    password: 'p@s',
    name: '3',
    options: { ca: '/ca.pem' },
  });
  const hosts = [
    { host: 'a', port: 26_379 },
    { host: 'b', port: 2 },
  ];
  expect(parseRedisUrl('redis+sentinel://:pw@a,b:2/main?replicas=1')).toMatchObject({
    kind: 'sentinel',
    hosts,
    name: 'main',
    password: 'pw',
  });
  expect(parseRedisUrl('rediss+cluster://a:1,b:2')).toMatchObject({ kind: 'cluster', tls: true, name: 'etude' });
});

it.each([
  ['http://secret', /must be a redis/],
  ['redis://:secret@a,b', /has one host/],
  ['redis://:secret@a:99999', /ports must be 1 to 65535/],
  ['redis://:secret@a/main', /number of a database/],
  ['redis+sentinel://:secret@a', /name of the primary/],
  ['redis+cluster://:secret@a/{x}', /hash tag .* without its braces/],
  ['redis://:%zz@secret', /percent-encoded/],
  ['redis://secret?ca=x', /need rediss/],
  ['rediss://secret?cert=x', /belong together/],
  ['redis://secret?replicas=many', /0 to 9/],
  ['redis://secret?other=1', /its options can be ca, cert/],
])('refuses %s, and tells nothing of it', (url, reason) => {
  expect(() => parseRedisUrl(url)).toThrow(reason);
  expect(() => parseRedisUrl(url)).not.toThrow(/secret/);
});
