import type { Fact } from '@etude/contracts/memory';
import type { Memory } from '@etude/memory/memory';
import { type Experience, factsData, type FactQuery } from './facts-data.js';
import { percentile, round, timed } from './figures.js';

const TENANT = 'facts';
const AGENT = 'assistant';
const RECALLED = 5;
const START = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;

/**
 * Stores 500 experiences of 20 users one by one, with 50 repeats (half of them reworded) and 25 contradictions. Then asks 200 questions
 * whose words differ from those of the facts.
 *
 * `facts_recall5`: share of questions whose answer is among the first five hits; `facts_copies`: current facts that repeat another fact;
 * `facts_stale_ahead`: old values in a hit before the new one; `facts_stale_current`: old values that are still current.
 */
export async function factsLoad(memory: Memory): Promise<Record<string, number>> {
  const { experiences, queries } = factsData();
  const stored: number[] = [];
  for (const [at, experience] of experiences.entries())
    stored.push(await timed(() => memory.semantic.store(`facts-${at}`, factOf(experience, at))));
  const searched: number[] = [];
  let found = 0;
  let staleAhead = 0;
  for (const query of queries) {
    let texts: readonly string[] = [];
    searched.push(await timed(async () => (texts = await hitTexts(memory, query))));
    const answer = texts.findIndex((text) => text.includes(query.value));
    if (answer !== -1) found += 1;
    if (isStaleAhead(texts, query, answer)) staleAhead += 1;
  }
  return {
    facts_experiences: experiences.length,
    facts_queries: queries.length,
    facts_recall5: round(found / queries.length, 4),
    ...(await currentFigures(memory, experiences)),
    facts_stale_ahead: staleAhead,
    facts_store_p50_ms: round(percentile(stored, 50)),
    facts_store_p95_ms: round(percentile(stored, 95)),
    facts_search_p50_ms: round(percentile(searched, 50)),
    facts_search_p95_ms: round(percentile(searched, 95)),
  };
}

function factOf({ user, text, about }: Experience, at: number): Fact {
  const scope = { tenant: TENANT, agent: AGENT, user: userName(user) };
  const told = { category: 'general', subject: about, confidence: 1, source: 'told', episodes: [], support: 1, accessCount: 0 };
  return { id: 'new', scope, text, createdAt: START + at * MINUTE_MS, ...told };
}

async function hitTexts(memory: Memory, { user, text }: FactQuery): Promise<readonly string[]> {
  const scope = { tenant: TENANT, agent: AGENT, user: userName(user) };
  const hits = await memory.semantic.search(scope, { text, limit: RECALLED, kinds: ['fact'] });
  return hits.map((hit) => hit.text.toLowerCase());
}

/** Whether a hit with only the old value is ranked before the answer, or no answer was found. */
function isStaleAhead(texts: readonly string[], { stale, value }: FactQuery, answer: number): boolean {
  if (stale === null) return false;
  return texts.some(
    (text, at) => text.includes(stale) && !text.includes(value) && isSameThing(text, texts[answer]) && (answer === -1 || at < answer),
  );
}

function isSameThing(text: string, answer: string | undefined): boolean {
  if (answer === undefined) return true;
  const words = new Set(answer.split(/\W+/));
  const shared = text.split(/\W+/).filter((word) => words.has(word)).length;
  return shared * 2 >= words.size;
}

/** Whether exactly the last value of each fact is current. */
async function currentFigures(memory: Memory, experiences: readonly Experience[]): Promise<Record<string, number>> {
  const last = new Map(experiences.map((experience) => [experience.about, experience]));
  const contradicted = experiences.filter(
    ({ about, text, kind }) => kind === 'new' && last.get(about)?.kind === 'contradiction' && last.get(about)?.text !== text,
  );
  let current = 0;
  let staleCurrent = 0;
  for (const user of new Set(experiences.map((experience) => experience.user))) {
    const facts = await memory.semantic.list({ tenant: TENANT, agent: AGENT, user: userName(user) }, 1_000);
    current += facts.length;
    staleCurrent += contradicted.filter((old) => old.user === user && facts.some(({ text }) => text === old.text)).length;
  }
  return {
    facts_current: current,
    facts_copies: Math.max(0, current - staleCurrent - last.size),
    facts_lost: Math.max(0, last.size - (current - staleCurrent)),
    facts_stale_current: staleCurrent,
  };
}

const userName = (user: number) => `user-${String(user).padStart(2, '0')}`;
