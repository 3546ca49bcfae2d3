import { expect, it } from 'vitest';
import { isLoopback } from './outside-tools.js';

it.each(['127.0.0.1', '127.9.9.9', '::1', 'localhost'])('%s is loopback', (host) => {
  expect(isLoopback(host)).toBe(true);
});

it.each(['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com', 'example.com', '128.0.0.1'])('%s is not loopback', (host) => {
  expect(isLoopback(host)).toBe(false);
});
