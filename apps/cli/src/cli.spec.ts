import { expect, it } from 'vitest';
import { commandLine, createCli, readSettings, withGateway } from './cli.js';

const line = (globals: object, environment: Record<string, string> = {}) =>
  commandLine(createCli(readSettings(environment), { timeout: 30_000, ...globals }, new AbortController().signal), 'down');

it('repeats --home and --address if they differ from the defaults', () => {
  expect(line({})).toBe('./etude down');
  expect(line({}, { ETUDE_HOME: '/mine' })).toBe('./etude down');
  expect(line({ home: '/mine' })).toBe('./etude down --home /mine');
  expect(line({ home: '/mine' }, { ETUDE_HOME: '/mine' })).toBe('./etude down');
  expect(line({ address: 'far:1' })).toBe('./etude down --address far:1');
});

it('suggests to start a missing stack in the same home', async () => {
  const settings = readSettings({});
  const cli = createCli(settings, { timeout: 30_000, home: '/nowhere/to/be/found' }, new AbortController().signal);
  await expect(withGateway(cli, async () => 0)).rejects.toMatchObject({
    exit: 4,
    hint: expect.arrayContaining(['start one here: ./etude up --home /nowhere/to/be/found']) as string[],
  });
});
