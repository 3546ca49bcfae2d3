import { expect, it } from 'vitest';
import { commandLine, createCli } from './cli.js';
import { readSettings } from './settings.js';

const line = (globals: object, environment: Record<string, string> = {}) =>
  commandLine(createCli(readSettings(environment), { timeout: 30, ...globals }, new AbortController().signal), 'down');

it('repeats where the stack is, where that is not the usual place', () => {
  expect(line({})).toBe('./etude down');
  expect(line({}, { ETUDE_HOME: '/mine' })).toBe('./etude down');
  expect(line({ home: '/mine' })).toBe('./etude down --home /mine');
  expect(line({ home: '/mine' }, { ETUDE_HOME: '/mine' })).toBe('./etude down');
  expect(line({ address: 'far:1' })).toBe('./etude down --address far:1');
});
