import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';
import { summaryLine } from './figures.js';

const CHILD = fileURLToPath(new URL('./embed-child-main.js', import.meta.url));
const Figures = z.record(z.string(), z.number());
const runFile = promisify(execFile);

async function measure(embedder: string): Promise<z.infer<typeof Figures>> {
  const { stdout } = await runFile(process.execPath, ['--max-semi-space-size=4', CHILD, embedder]);
  return Figures.parse(JSON.parse(stdout));
}

/** The cost of each embedder for a service: time per text, and memory. Each embedder has its own process. The cache is off. */
export async function run(args: readonly string[]): Promise<number> {
  const json = args.includes('--json');
  const figures: Record<string, number> = {};
  for (const embedder of ['lexical', 'sentence']) {
    for (const [name, value] of Object.entries(await measure(embedder))) {
      figures[`${embedder}_${name}`] = Number(value.toFixed(2));
      if (!json) process.stdout.write(`${embedder.padEnd(9)} ${name.padEnd(14)} ${value.toFixed(2)}\n`);
    }
  }
  process.stdout.write(`${summaryLine('embed', figures)}\n`);
  return 0;
}
