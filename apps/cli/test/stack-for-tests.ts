import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@etude/test-support/ports';
import { afterAll, beforeAll } from 'vitest';
import { etude, succeeds } from './etude.js';

const free = async () => String(await freePort());

interface StackOptions {
  /** Flags of `etude up`. */
  readonly flags?: readonly string[];
  /** Called just before the stack starts. */
  readonly env?: () => Promise<Readonly<Record<string, string>>>;
}

/**
 * Starts a stack before the tests of the suite, and stops the stack after them. Returns its home.
 *
 * @param model a script; null: the model of the given environment
 */
export function stackForTests(model: string | null, { flags = [], env = async () => ({}) }: StackOptions = {}): string {
  const home = join(tmpdir(), `etude-home-${randomUUID().slice(0, 8)}`);
  beforeAll(async () => {
    mkdirSync(home, { mode: 0o700 });
    // On a default port, another test's stack could take the port while a test has killed this gateway.
    const ports = { ETUDE_GRPC_PORT: await free(), ETUDE_REST_PORT: await free(), ETUDE_MCP_PORT: await free() };
    const scripted = model === null ? [] : ['--scripted', model];
    await succeeds(etude(['up', '--detach', ...scripted, ...flags, '--home', home], { ...ports, ...(await env()) }));
  });
  afterAll(async () => {
    await etude(['down', '--home', home]);
    rmSync(home, { recursive: true, force: true });
  });
  return home;
}
