import { execFile, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { programEnvironment } from '@etude/test-support/processes';
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

const page = readFileSync(join(root, 'docs', 'skills.md'), 'utf8');

interface Step {
  readonly shell: string;
  /** "…" matches any text within a line. A line with only "…" matches any lines. */
  readonly printed: string;
}

/** Every block of shell commands that is followed by its output. */
function steps(): readonly Step[] {
  return [...page.matchAll(/^```sh\n((?:(?!```).*\n)*)```\n\n```text\n((?:(?!```).*\n)*)```$/gm)].map(([, shell = '', printed = '']) => ({
    shell,
    printed,
  }));
}

/** The page's script of the scripted model. */
function scriptOfPage(): string {
  const script = /^cat > model\.yaml <<'END'\n([^]*?)^END$/m.exec(page)?.[1];
  if (script === undefined) throw new Error('docs/skills.md has no model.yaml');
  return script;
}

const literally = (part: string) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

function pattern(printed: string): RegExp {
  const lines = printed.trimEnd().split('\n');
  const parts = lines.map((line) => (line === '…' ? '(?:.*\\n)*?' : `${line.split('…').map(literally).join('.*?')}\\n`));
  return new RegExp(`^${parts.join('')}$`);
}

/** The output on stdout and stderr, in order. */
async function printedBy(shell: string, cwd: string, env: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn('bash', ['-c', `exec 2>&1\n${shell}`], { cwd, env, stdio: ['ignore', 'pipe', 'ignore'] });
  return text(child.stdout);
}

/** Writes a launcher of the built CLI. The repository's own `etude` would install and build first. */
function writeEtude(dir: string): void {
  const path = join(dir, 'etude');
  writeFileSync(path, `#!/bin/sh\nexec "${process.execPath}" "${join(root, 'apps/cli/dist/main.js')}" "$@"\n`);
  chmodSync(path, 0o755);
}

it('documents a walk through the life of a skill that prints what the page shows', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'etude-skills-docs-'));
  writeEtude(dir);
  writeFileSync(join(dir, 'model.yaml'), scriptOfPage());
  const stack = await startStack({ script: join(dir, 'model.yaml') });
  const env = {
    ...programEnvironment(),
    PATH: `${dir}${delimiter}${process.env['PATH']}`,
    ETUDE_ADDRESS: stack.address,
    ETUDE_HOME: join(dir, 'home'),
  };
  try {
    expect(steps().length).toBeGreaterThan(10);
    for (const { shell, printed } of steps()) {
      const found = await printedBy(shell, dir, env);
      expect(pattern(printed).test(found), `docs/skills.md shows\n${printed}\nand it prints\n${found}`).toBe(true);
    }
  } finally {
    await stack.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}, 240_000);
