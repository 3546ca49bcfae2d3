/** For `etude backup` and `etude restore`: reads the services' settings, prints the manifest, and ends with 0 or 1. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { memoryConfig, requireMemory } from '@etude/memory/memory-config';
import { placeOf } from '@etude/memory/open-memory';
import { embedderConfig, embedderFrom } from '@etude/model/model-config';
import { baseConfig, loadConfig } from '@etude/platform/config';
import { z } from 'zod';
import { backUp, restore } from './backup.js';

const config = requireMemory(baseConfig.extend(embedderConfig.shape).extend(memoryConfig.shape));
const Package = z.object({ version: z.string() });

async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'boolean' }, force: { type: 'boolean' }, 'redis-folder': { type: 'string' } },
  });
  const [command, folder = '', ...files] = positionals;
  const { version } = Package.parse(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')));
  const loaded = loadConfig(config);
  const installation = {
    redisUrl: loaded.ETUDE_REDIS_URL,
    queuePrefix: loaded.ETUDE_QUEUE_PREFIX,
    memory: placeOf(loaded),
    environment: process.env,
    embedder: await embedderFrom(loaded),
    onProgress: (line: string) => void process.stderr.write(process.stderr.isTTY ? `\r\u001b[K${line}` : `${line}\n`),
  };
  const redisFolder = values['redis-folder'] ?? null;
  const manifest =
    command === 'backup'
      ? await backUp(installation, folder, files, version)
      : await restore(installation, folder, { redisFolder, force: values.force === true, version });
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
  const bytes = manifest.files.reduce((sum, file) => sum + file.bytes, 0);
  const done = command === 'backup' ? `backed up to ${folder}` : `restored ${folder} of ${new Date(manifest.at).toISOString()}`;
  console.log(values.json ? JSON.stringify({ folder, ...manifest }) : `${done}: ${manifest.files.length} files, ${bytes} bytes`);
}

// Only the owner may read the files of a backup.
process.umask(0o077);
try {
  await run();
} catch (error) {
  console.error(`etude: ${(error as Error).message}`);
  process.exitCode = 1;
}
process.exit();
