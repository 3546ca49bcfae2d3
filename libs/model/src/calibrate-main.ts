import { builtInPairs, calibrateEmbedder, readPairs } from './calibrate-embedder.js';
import { embedderConfig, embedderFrom } from './model-config.js';

/** `calibrate-main [PAIRS.jsonl]` prints a JSON report about the embedder that the environment names. Exit code 2 on any error. */
async function main([path]: readonly string[]): Promise<void> {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  const embedder = await embedderFrom(embedderConfig.parse(given), { warn: (message) => process.stderr.write(`${message}\n`) });
  const report = await calibrateEmbedder(path === undefined ? builtInPairs() : readPairs(path), embedder, new AbortController().signal);
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
