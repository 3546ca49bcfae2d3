import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { etude, succeeds } from './etude.js';

/** Answers the home of a stack with this scripted model, which is started before the tests beside this call and stopped behind them. */
export function stackForTests(model: string, env: () => Promise<Readonly<Record<string, string>>> = async () => ({})): string {
  const home = join(tmpdir(), `etude-home-${randomUUID().slice(0, 8)}`);
  beforeAll(async () => {
    mkdirSync(home, { mode: 0o700 });
    await succeeds(etude(['up', '--detach', '--scripted', model, '--home', home], await env()));
  });
  afterAll(async () => {
    await etude(['down', '--home', home]);
    rmSync(home, { recursive: true, force: true });
  });
  return home;
}
