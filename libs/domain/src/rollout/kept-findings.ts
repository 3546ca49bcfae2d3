import type { Fact, RecalledItem, Scope } from '@etude/contracts/memory';
import { factId } from '../facts/fact-plan.js';
import { factEntry, FINDING } from '../retrieval/entries.js';
import { namesAsWords } from '../retrieval/words.js';
import type { ExecutionMemory, Finding } from '../findings/execution-memory.js';
import { recallsNothing, itemOf } from '../recall/recall.js';
import { contentDigest } from '../skills/content-digest.js';
import { isRelevant } from '../retrieval/fuse.js';
import { viewOf } from '../skills/life/find-skill.js';
import { isWithheldFrom } from './recall-step.js';
import type { RolloutContext } from './rollout-context.js';
import type { Workbench } from './workbench.js';

const KEPT_MAX = 20;
const RECALLED_MAX = 8;

type Told = Pick<Finding, 'tool' | 'query' | 'fact'>;

/** The text of the fact that stores a finding, such as "fs_read(a.py): defines main". */
export const findingText = ({ tool, query, fact }: Told) => `${tool}(${query}): ${fact}`;
const FINDING_TEXT = /^([\w/.-]+)\(([^]*?)\): ([^]*)$/;

function findingIn(text: string): Told | null {
  const [, tool = '', query = '', fact = ''] = FINDING_TEXT.exec(text) ?? [];
  return tool === '' ? null : { tool, query, fact };
}

const subjectOf = ({ tool, query }: Pick<Finding, 'tool' | 'query'>) => `${tool}(${query})`.slice(0, 200);

const recallsFindings = ({ spec: { memory } }: RolloutContext) => !recallsNothing(memory) && memory.layers.includes('semantic');

export const findingQuery = (task: string) => ({
  text: namesAsWords(task),
  limit: RECALLED_MAX,
  kinds: ['fact'] as const,
  category: FINDING,
  explain: true,
});

type Made = Pick<Fact, 'episodes' | 'createdAt' | 'touched'>;

/** The fact that stores a finding. Its names are also indexed as plain words, because a task says "reset link" where code says `resetLink`. */
export function findingFact(finding: Told & Pick<Finding, 'digest'>, scope: Scope, made: Made): Fact {
  const text = findingText(finding).slice(0, 4_000);
  const id = factId(scope, text);
  const kept = {
    category: FINDING,
    source: FINDING,
    confidence: 1,
    support: 1,
    accessCount: 0,
    ...(finding.digest && { digest: finding.digest }),
  };
  return { ...kept, ...made, id, scope, text, subject: subjectOf(finding), wordings: [{ id, text: namesAsWords(text) }] };
}

/** Recalls findings of earlier rollouts of the same agent and user that are similar to the task. */
export async function recallFindings(context: RolloutContext, bench: Workbench): Promise<void> {
  const { steps, spec, scope, deps } = context;
  if (!recallsFindings(context)) return;
  const items = await steps.run<readonly RecalledItem[]>('a1.findings.recall', 'recall', async () => {
    const found = await deps.semantic.search(viewOf(scope, scope.user), findingQuery(spec.prompt));
    // Names in code have a low similarity to a task in words, so `isRelevant` also accepts hits that share rare words.
    const related = found.filter((hit) => isRelevant(hit) && !isWithheldFrom(context, hit));
    const value = related.map(itemOf);
    return { value, summary: `${value.length} findings of earlier tasks` };
  });
  for (const { text } of items) {
    const told = findingIn(text);
    if (told !== null) bench.findings.add({ ...told, step: 0, success: true });
  }
  bench.recalled.push(...items);
}

export interface EarlierFinding {
  readonly fact: string;
  readonly item: RecalledItem;
}

/** The finding of an equal call in an earlier rollout of the same agent and user. null if there is none, or if the file's content differs. */
export async function earlierFinding(
  context: RolloutContext,
  { tool, query, digest }: Pick<Finding, 'tool' | 'query' | 'digest'>,
): Promise<EarlierFinding | null> {
  if (digest === undefined || !recallsFindings(context)) return null;
  const kept = await context.deps.semantic.about(context.scope, FINDING, subjectOf({ tool, query }));
  const told = kept === null ? null : findingIn(kept.text);
  if (kept === null || told?.query !== query || kept.digest !== digest) return null;
  const { kind, title, text, sources } = factEntry(kept);
  const item: RecalledItem = { id: kept.id, layer: 'semantic', kind, title, text, score: 1, similarity: 1, sources: [...sources] };
  return isWithheldFrom(context, { kind: 'fact', id: kept.id }) ? null : { fact: told.fact, item };
}

/** Stores the newest findings about files and outside tools as facts. Findings of memory tools are left out, because memory has them already. */
export async function keepFindings(context: RolloutContext, findings: ExecutionMemory, touched: readonly string[]): Promise<void> {
  const { steps, spec, scope, tenant, rolloutId, deps } = context;
  if (spec.memory.off || spec.memory.readOnly) return;
  const kept = findings.all.filter((finding) => isKept(finding)).slice(-KEPT_MAX);
  if (kept.length === 0) return;
  await steps.run('t.findings', 'record', async () => {
    for (const finding of kept) {
      const made = { episodes: [`${rolloutId}.episode`], createdAt: deps.clock.now(), touched: [...touched] };
      const fact = findingFact(finding, scope, made);
      await deps.outbox.put(tenant, `${rolloutId}.finding.${contentDigest(subjectOf(finding)).slice(0, 16)}`, { kind: 'fact', fact });
    }
    return { value: kept.length, summary: `kept ${kept.length} findings`, usage: { steps: 0 } };
  });
}

/** Matches text that may hold a secret, such as "API_KEY=…". Such findings are not stored. */
const SECRET = /(key|secret|token|passw(or)?d|credential)\w*["']?\s*[=:]|-----BEGIN|:\/\/[^\s/:@]+:[^\s/@]+@/i;

function isKept({ tool, step, success, fact }: Finding): boolean {
  const isOfFiles = tool === 'fs_read' || tool === 'fs_search' || tool === 'fs_list';
  return success && step > 0 && !SECRET.test(fact) && (isOfFiles || tool.includes('/'));
}
