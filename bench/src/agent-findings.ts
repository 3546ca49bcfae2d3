import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { factId } from '@etude/domain/facts/fact-keys';
import { FINDING } from '@etude/domain/retrieval/entries';
import { isRelevant } from '@etude/domain/retrieval/fuse';
import { findingText } from '@etude/domain/rollout/kept-findings';
import { openMemory } from '@etude/memory/open-memory';
import { embedderConfig, embedderFrom } from '@etude/model/model-config';
import { z } from 'zod';

/** A finding, as tool, query and fact, and a task in other words that needs it. */
const Line = z.strictObject({ finding: z.tuple([z.string(), z.string(), z.string()]), task: z.string() });
type Finding = z.infer<typeof Line>['finding'];

const SCOPE = { tenant: 'findings', agent: 'coder', user: null };
const START = Date.UTC(2026, 0, 1);
const FIRST = 3;
/** The limit of `recallFindings`. */
const RECALLED = 8;
const AREAS =
  'orders users carts products coupons shipping invoices reviews wishlist taxes vendors stores returns subscriptions gifts accounts catalog prices sessions tickets surveys banners loyalty warehouse couriers contracts budgets events rooms menus recipes courses lessons teams projects';
/** Files of each area, with what they define. */
const FILES: ReadonlyArray<readonly [string, (area: string, file: string) => string]> = [
  ['models views forms schema events errors tasks', (area, file) => `${area}_${file}, ${file}_of, Base`],
  ['client retry cache queue store filters sorting', (area, file) => `${file}_${area}, Config, close`],
  ['import export validate render archive merge lock', (area, file) => `${file}_one, ${file}_all_${area}`],
  ['metrics audit limits search mail report access', (area, file) => `${area}_${file}, LIMIT, main`],
];

/** Stores 1,000 findings of one agent as facts, and searches as a rollout does for the tasks that need one of them. */
export async function findingFigures(say: (text: string) => void) {
  const lines = readFileSync(new URL('../data/findings.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map(parseLine);
  const all = otherFindings().flatMap((other, i): Finding[] => (i % 49 === 0 ? [lines[i / 49]!.finding, other] : [other]));
  const embedder = await embedderFrom(embedderConfig.parse(process.env), { warn: say });
  const dir = await mkdtemp(join(tmpdir(), 'etude-bench-findings-'));
  const memory = await openMemory({ store: { adapter: 'sqlite', path: join(dir, 'memory.db') }, embedder });
  try {
    for (const [i, finding] of all.entries()) await memory.semantic.store(`f${i}`, factOf(finding, i));
    let [first, recalled] = [0, 0];
    for (const { finding, task } of lines) {
      const hits = await memory.semantic.search(SCOPE, { text: task, limit: 100, kinds: ['fact'], category: FINDING, explain: true });
      const place = hits.findIndex(({ text }) => text === textOf(finding));
      if (place >= 0 && place < FIRST) first += 1;
      else say(`  with ${embedder.profile.model} place ${place < 0 ? 'over 100' : place + 1}: ${task}`);
      if (hits.slice(0, RECALLED).some((hit, at) => at === place && isRelevant(hit))) recalled += 1;
    }
    return { findings: all.length, findings_asked: lines.length, findings_in_first_3: first, findings_recalled: recalled };
  } finally {
    await memory.close();
    await rm(dir, { recursive: true });
  }
}

const parseLine = (text: string) => Line.parse(JSON.parse(text));
const textOf = ([tool, query, fact]: Finding) => findingText({ tool, query, fact });

function otherFindings(): readonly Finding[] {
  const files = FILES.flatMap(([names, defined]) => names.split(' ').map((file) => [file, defined] as const));
  return AREAS.split(' ').flatMap((area) =>
    files.map(([file, defined]): Finding => ['fs_read', `src/${area}/${file}.py`, `File contains: ${defined(area, file)}`]),
  );
}

/** As `keepFindings` keeps it. */
function factOf(finding: Finding, i: number) {
  const [tool, query] = finding;
  const text = textOf(finding);
  const told = { text, subject: `${tool}(${query})`, category: FINDING, source: FINDING, confidence: 1, support: 1, accessCount: 0 };
  return { ...told, id: factId(SCOPE, text), scope: SCOPE, episodes: [`t${i}-r1.episode`], createdAt: START + i * 60_000 };
}
