import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { RolloutRun } from '@etude/contracts/queues';
import { consume } from '@etude/queue/jobs/consumer';
import { expect, it } from 'vitest';
import { gatewayForFile, KEYS } from './gateway.harness.js';

const rig = gatewayForFile();
const root = join(import.meta.dirname, '..', '..', '..');

function example(language: string): string {
  const page = readFileSync(join(root, 'docs', 'api.md'), 'utf8');
  const block = new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'm').exec(page)?.[1];
  if (!block) throw new Error(`docs/api.md has no example in ${language}`);
  return block;
}

it('documents a TypeScript client that runs without changes', async () => {
  // Inside the repository, so that Node finds its imports.
  const dir = mkdtempSync(join(import.meta.dirname, 'example-'));
  const worker = consume(
    RolloutRun,
    async ({ tenant, taskId }) => {
      await rig.finish(tenant, `tasks/${taskId}`);
      return { outcome: 'succeeded' as const };
    },
    { redisUrl: rig.redis.url, prefix: rig.prefix, concurrency: 1 },
  );
  try {
    writeFileSync(join(dir, 'example.ts'), example('ts'));
    const env = { PATH: process.env['PATH'], ETUDE_ADDRESS: rig.address, ETUDE_API_KEY: KEYS.acme };
    const { stdout } = await promisify(execFile)(process.execPath, [join(dir, 'example.ts')], { cwd: root, env, timeout: 100_000 });
    expect(stdout).toContain('TASK_STATE_SUCCEEDED VERDICT_AC');
    expect(stdout).toMatch(/INVALID_ARGUMENT .*spec\.prompt/);
  } finally {
    await worker.close(1_000);
    rmSync(dir, { recursive: true, force: true });
  }
});
