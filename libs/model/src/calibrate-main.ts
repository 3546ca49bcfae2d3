import { BUILT_IN_PAIRS } from '@etude/domain/retrieval/pairs/built-in-pairs';
import { calibrateEmbedder } from './calibrate-embedder.js';
import { embedderConfig, embedderFrom } from './embedder-config.js';
import { readPairs } from './read-pairs.js';

/** `calibrate-main [PAIRS.jsonl]`: a report about the embedder that the environment names, as JSON on stdout; 2 where something is wrong. */
async function main([path]: readonly string[]): Promise<void> {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  const embedder = await embedderFrom(embedderConfig.parse(given), { warn: (message) => process.stderr.write(`${message}\n`) });
  const report = await calibrateEmbedder(path === undefined ? BUILT_IN_PAIRS : readPairs(path), { embedder }, new AbortController().signal);
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
