import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startStack } from '@etude/test-support/stack';
import { expect, it } from 'vitest';
import { keyOf, writeKeys } from './tenant-keys.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));

function example(language: string): string {
  const page = readFileSync(join(root, 'docs', 'sandboxes.md'), 'utf8');
  const block = new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'm').exec(page)?.[1];
  if (!block) throw new Error(`docs/sandboxes.md has no example in ${language}`);
  return block;
}

it('documents a TypeScript client of sandboxes that works as it stands', async () => {
  // The folder is inside the repository, so imports resolve, and Git ignores it.
  const built = join(root, 'test', 'flow', 'dist');
  mkdirSync(built, { recursive: true });
  const dir = mkdtempSync(join(built, 'example-'));
  const keys = join(dir, 'keys.json');
  writeKeys(keys, ['acme']);
  const script = fileURLToPath(new URL('./learning.yaml', import.meta.url));
  const settings = { ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside', ETUDE_AUTH_KEYS_PATH: keys };
  const stack = await startStack({ script, env: settings });
  try {
    writeFileSync(join(dir, 'sandbox.ts'), example('ts'));
    const env = { PATH: process.env['PATH'], ETUDE_ADDRESS: stack.address, ETUDE_API_KEY: keyOf('acme') };
    const { stdout } = await promisify(execFile)(process.execPath, [join(dir, 'sandbox.ts')], { cwd: root, env, timeout: 100_000 });
    expect(stdout.split('\n')).toEqual(
      expect.arrayContaining(['read 3', '6 []', 'nonzero ZeroDivisionError', "[ '1', '2', '3', '' ]", 'SANDBOX_STATE_CLOSED']),
    );
    expect(stdout).toMatch(/INVALID_ARGUMENT .*path/);
  } finally {
    rmSync(dir, { recursive: true, force: true });
    await stack.stop();
  }
});
