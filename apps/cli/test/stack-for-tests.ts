import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@etude/test-support/ports';
import { afterAll, beforeAll } from 'vitest';
import { etude, succeeds } from './etude.js';

/**
 * Starts a stack before the tests of the suite, and stops the stack after them. Returns its home.
 *
 * @param model a script; null: the model of the given environment
 */
export function stackForTests(model: string | null, env: () => Promise<Readonly<Record<string, string>>> = async () => ({})): string {
  const home = join(tmpdir(), `etude-home-${randomUUID().slice(0, 8)}`);
  beforeAll(async () => {
    mkdirSync(home, { mode: 0o700 });
    // With the usual port, another test's stack could take it while a test has killed this gateway.
    const port = { ETUDE_GRPC_PORT: String(await freePort()) };
    await succeeds(
      etude(['up', '--detach', ...(model === null ? [] : ['--scripted', model]), '--home', home], { ...port, ...(await env()) }),
    );
  });
  afterAll(async () => {
    await etude(['down', '--home', home]);
    rmSync(home, { recursive: true, force: true });
  });
  return home;
}
