import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { programEnvironment } from '@etude/test-support/processes';
import { startStack } from '@etude/test-support/stack';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));

interface Step {
  readonly shell: string;
  /** "…" matches any text within a line. A line with only "…" matches any lines. */
  readonly printed: string;
}

/** Every block of shell commands that is followed by its output. */
function stepsOf(page: string): readonly Step[] {
  return [...page.matchAll(/^```sh\n((?:(?!```).*\n)*)```\n\n```text\n((?:(?!```).*\n)*)```$/gm)].map(([, shell = '', printed = '']) => ({
    shell,
    printed,
  }));
}

/** The page's script for the scripted model, or a script without answers if the page has none. */
function scriptOf(page: string): string {
  return /^cat > model\.yaml <<'END'\n([^]*?)^END$/m.exec(page)?.[1] ?? 'rules: []\n';
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

it.each([
  ['skills.md', 10],
  ['agents.md', 3],
  ['memory.md', 1],
])(
  'documents a walk in %s that prints what the page shows',
  async (name, stepsMin) => {
    const page = readFileSync(join(root, 'docs', name), 'utf8');
    const dir = mkdtempSync(join(tmpdir(), 'etude-docs-walk-'));
    writeEtude(dir);
    writeFileSync(join(dir, 'model.yaml'), scriptOf(page));
    const stack = await startStack({ script: join(dir, 'model.yaml'), env: { ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside' } });
    const env = {
      ...programEnvironment(),
      PATH: `${dir}${delimiter}${process.env['PATH']}`,
      ETUDE_ADDRESS: stack.address,
      ETUDE_HOME: join(dir, 'home'),
    };
    try {
      await stack.startRolloutWorker();
      const steps = stepsOf(page);
      expect(steps.length).toBeGreaterThanOrEqual(stepsMin);
      for (const { shell, printed } of steps) {
        const found = await printedBy(shell, dir, env);
        expect(pattern(printed).test(found), `docs/${name} shows\n${printed}\nand it prints\n${found}`).toBe(true);
      }
    } finally {
      await stack.stop();
      rmSync(dir, { recursive: true, force: true });
    }
  },
  240_000,
);
