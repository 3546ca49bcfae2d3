import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRelevant } from '@etude/domain/retrieval/fuse';
import { findingFact, findingQuery, findingText } from '@etude/domain/rollout/kept-findings';
import { openMemory } from '@etude/memory/open-memory';
import { embedderConfig, embedderFrom } from '@etude/model/model-config';
import { z } from 'zod';
import { pythonFindings, type Triple, typescriptFindings } from './other-findings.js';

/** A finding as tool, query and fact, and a task that needs the finding but uses other words. */
const Line = z.strictObject({ finding: z.tuple([z.string(), z.string(), z.string()]), task: z.string() });

const SCOPE = { tenant: 'findings', agent: 'coder', user: null };
const START = Date.UTC(2026, 0, 1);
const FIRST = 3;
type Embedder = Awaited<ReturnType<typeof embedderFrom>>;

/** For Python and for TypeScript: stores 1,000 findings of one agent as facts, and searches them for each task as a rollout does. */
export async function findingFigures(say: (text: string) => void) {
  const embedder = await embedderFrom(embedderConfig.parse(process.env), { warn: say });
  const python = await figuresOf(linesOf('findings.jsonl'), pythonFindings(), embedder, say);
  const typescript = await figuresOf(linesOf('findings-typescript.jsonl'), typescriptFindings(), embedder, say);
  const other = Object.entries(typescript).map(([name, value]) => [name.replace('findings', 'findings_typescript'), value]);
  return { ...python, ...(Object.fromEntries(other) as Record<string, number>) };
}

async function figuresOf(lines: ReturnType<typeof linesOf>, others: readonly Triple[], embedder: Embedder, say: (text: string) => void) {
  const all = others.flatMap((other, i): Triple[] => (i % 49 === 0 ? [lines[i / 49]!.finding, other] : [other]));
  const dir = await mkdtemp(join(tmpdir(), 'etude-bench-findings-'));
  const memory = await openMemory({ store: { adapter: 'sqlite', path: join(dir, 'memory.db') }, embedder });
  try {
    for (const [i, finding] of all.entries()) await memory.semantic.store(`f${i}`, factOf(finding, i));
    let [first, recalled] = [0, 0];
    for (const { finding, task } of lines) {
      const query = findingQuery(task);
      const hits = await memory.semantic.search(SCOPE, { ...query, limit: 100 });
      const place = hits.findIndex(({ text }) => text === findingText(told(finding)));
      if (place >= 0 && place < FIRST) first += 1;
      else say(`  with ${embedder.profile.model} place ${place < 0 ? 'over 100' : place + 1}: ${task}`);
      if (hits.slice(0, query.limit).some((hit, at) => at === place && isRelevant(hit))) recalled += 1;
    }
    return { findings: all.length, findings_asked: lines.length, findings_in_first_3: first, findings_recalled: recalled };
  } finally {
    await memory.close();
    await rm(dir, { recursive: true });
  }
}

function linesOf(file: string) {
  const text = readFileSync(new URL(`../data/${file}`, import.meta.url), 'utf8').trim();
  return text.split('\n').map((line) => Line.parse(JSON.parse(line)));
}

const told = ([tool, query, fact]: Triple) => ({ tool, query, fact });

const factOf = (finding: Triple, i: number) =>
  findingFact(told(finding), SCOPE, { episodes: [`t${i}-r1.episode`], createdAt: START + i * 60_000 });
