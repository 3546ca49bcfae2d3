import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Fact } from '@etude/contracts/memory';
import type { PairVerdict } from '@etude/domain/facts/fact-prompts';
import type { ChatModel } from '@etude/domain/ports/model';
import type { Memory } from '@etude/memory/memory';
import { openMemory } from '@etude/memory/open-memory';
import { chatModelFrom, embedderConfig, embedderFrom, modelConfig } from '@etude/model/model-config';
import { creditFor } from '@etude/queue/memory/settling-store';
import { z } from 'zod';
import { round } from './figures.js';

/** Two statements in free wording and a question whose answer is in the second statement. */
const Line = z.strictObject({
  id: z.string(),
  kind: z.enum(['contradiction', 'lookalike', 'repeat']),
  language: z.string(),
  first: z.string(),
  second: z.string(),
  question: z.string(),
  answer: z.string(),
});
type Line = z.infer<typeof Line>;

const SCOPE = { tenant: 'told', agent: 'assistant', user: 'ann' };
const START = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
/** Facts are compared after this number of new facts, as after a short burst. */
const BURST = 12;
const ALL = 1_000;
const ASKED_CHARS_MIN = 3;

/**
 * Stores facts that one user tells in free wording, a quarter of them not in English: all first statements, then all second statements.
 * The judge is the environment's model. Without a model, a script answers with the right verdicts, so that only the choice of pairs counts.
 *
 * `told_lost`: statements that their own words don't find; `told_stale_current`: outdated statements that are still current;
 * `told_wrongly_replaced`: true statements that are not current; `told_copies`: repeats kept twice; `told_recall5` and `told_mrr`: recall and
 * reciprocal rank over the questions; `told_stale_ahead`: outdated statements ranked before the new one, while nothing was compared yet.
 */
export async function toldFigures(say: (text: string) => void): Promise<Record<string, number>> {
  const lines = readFileSync(new URL('../data/told.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map(parseLine);
  const embedder = await embedderFrom(embedderConfig.parse(process.env), { warn: say });
  const judge = judgeFor(lines);
  say(`${lines.length * 2} told facts, with ${embedder.profile.model}, compared by ${judge.name} ...`);
  const dir = await mkdtemp(join(tmpdir(), 'etude-bench-told-'));
  const memory = await openMemory({ store: { adapter: 'sqlite', path: join(dir, 'memory.db') }, embedder });
  try {
    return await figuresOf(memory, lines, judge);
  } finally {
    await memory.close();
    await rm(dir, { recursive: true });
  }
}

const parseLine = (text: string): Line => Line.parse(JSON.parse(text));

interface Judge {
  readonly name: string;
  readonly isScripted: boolean;
  readonly model: ChatModel;
}

function judgeFor(lines: readonly Line[]): Judge {
  const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key } = process.env;
  if (url || key)
    return { name: process.env.OPENAI_MODEL ?? 'the model', isScripted: false, model: chatModelFrom(modelConfig.parse(process.env)) };
  return {
    name: 'a script that knows the data',
    isScripted: true,
    model: { chat: async ({ messages }) => answerOf(lines, messages.at(-1)?.content ?? '') },
  };
}

function answerOf(lines: readonly Line[], prompt: string): Awaited<ReturnType<ChatModel['chat']>> {
  const [notes = [], pairs = []] = ['notes', 'pairs'].map(
    (tag) => JSON.parse(prompt.split(`<${tag}>`)[1]?.split(`</${tag}>`)[0] ?? '[]') as unknown[],
  );
  const verdictOf = ([older, newer]: readonly number[]): PairVerdict['verdict'] => {
    const line = lines.find(({ first, second }) => first === notes[older!] && second === notes[newer!]);
    return line === undefined || line.kind === 'lookalike' ? 'differs' : line.kind === 'repeat' ? 'same' : 'replaces';
  };
  const text = JSON.stringify({ pairs: (pairs as number[][]).map((pair) => ({ verdict: verdictOf(pair), reason: 'as the data says' })) });
  return { text, finishReason: 'stop', model: 'script', scripted: true, inputTokens: 0, outputTokens: 0, costUsd: 0 };
}

async function figuresOf(memory: Memory, lines: readonly Line[], judge: Judge): Promise<Record<string, number>> {
  const spent = { calls: 0, promptTokens: 0 };
  let told = 0;
  const settle = () =>
    memory.semantic.settle(SCOPE.tenant, {
      model: judge.model,
      budget: {
        left: async () => creditFor(told, spent),
        charge: async (promptTokens) => {
          spent.calls += 1;
          spent.promptTokens += promptTokens;
        },
      },
      isOn: async () => true,
      signal: new AbortController().signal,
    });
  for (const part of ['first', 'second'] as const)
    for (const line of lines) {
      await memory.semantic.store(`${line.id}-${part}`, factOf(line[part], (told += 1)));
      if (told % BURST === 0) await settle();
    }
  const staleAhead = await countStaleAhead(lines);
  await settle();
  const current = await memory.semantic.list(SCOPE, ALL);
  const isHeld = (text: string) => current.some((fact) => fact.text === text || fact.wordings?.some((wording) => wording.text === text));
  const isOwn = (text: string) => current.some((fact) => fact.text === text);
  const of = (kind: Line['kind']) => lines.filter((line) => line.kind === kind);
  const mustStand = lines.flatMap(({ kind, first, second }) => (kind === 'contradiction' ? [second] : [first, second]));
  const ranks = await Promise.all(lines.map((line) => rankOf(memory, line)));
  return {
    ...(judge.isScripted ? { told_scripted_judge: 1 } : {}),
    told_facts: told,
    told_lost: await countLost(memory, mustStand),
    told_stale_current: of('contradiction').filter(({ first }) => isHeld(first)).length,
    told_contradictions: of('contradiction').length,
    told_wrongly_replaced: mustStand.filter((text) => !isHeld(text)).length,
    told_copies: of('repeat').filter(({ first, second }) => isOwn(first) && isOwn(second)).length,
    told_repeats: of('repeat').length,
    told_stale_ahead: staleAhead,
    told_recall5: round(ranks.filter((rank) => rank <= 5).length / lines.length, 4),
    told_mrr: round(ranks.reduce((sum, rank) => sum + 1 / rank, 0) / lines.length, 4),
    told_model_calls_per_fact: round(spent.calls / told, 3),
    told_prompt_tokens_per_fact: round(spent.promptTokens / told, 1),
  };
}

function factOf(text: string, at: number): Fact {
  const told = { category: 'general', confidence: 1, source: 'told', episodes: [], support: 1, accessCount: 0 };
  return { id: 'new', scope: SCOPE, text, createdAt: START + at * MINUTE_MS, ...told };
}

async function countLost(memory: Memory, texts: readonly string[]): Promise<number> {
  let lost = 0;
  for (const text of texts) {
    const hits = await memory.semantic.search(SCOPE, { text, limit: 5, kinds: ['fact'] });
    const facts = await Promise.all(hits.map(({ id }) => memory.semantic.get(SCOPE, id)));
    if (!facts.some((fact) => fact?.text === text || fact?.wordings?.some((wording) => wording.text === text))) lost += 1;
  }
  return lost;
}

/** The rank of the hit with the answer; Infinity beyond the first twenty. */
async function rankOf(memory: Memory, { question, answer, second }: Line): Promise<number> {
  const hits = await memory.semantic.search(SCOPE, { text: question, limit: 20, kinds: ['fact'] });
  const at = hits.findIndex(({ text }) => text === second || (answer.length >= ASKED_CHARS_MIN && text.includes(answer)));
  return at === -1 ? Infinity : at + 1;
}

/** Stores each contradiction in its own memory, where nothing is compared. Counts outdated statements ranked before the new one. */
async function countStaleAhead(lines: readonly Line[]): Promise<number> {
  const embedder = await embedderFrom(embedderConfig.parse(process.env));
  const dir = await mkdtemp(join(tmpdir(), 'etude-bench-unsettled-'));
  const memory = await openMemory({ store: { adapter: 'sqlite', path: join(dir, 'memory.db') }, embedder });
  let ahead = 0;
  try {
    const contradictions = lines.filter(({ kind }) => kind === 'contradiction');
    for (const [at, { id, first, second }] of contradictions.entries()) {
      await memory.semantic.store(`${id}-first`, factOf(first, at));
      await memory.semantic.store(`${id}-second`, factOf(second, at + ALL));
    }
    for (const { question, first, second } of contradictions) {
      const texts = (await memory.semantic.search(SCOPE, { text: question, limit: 5, kinds: ['fact'] })).map(({ text }) => text);
      const [old, now] = [texts.indexOf(first), texts.indexOf(second)];
      if (old !== -1 && (now === -1 || old < now)) ahead += 1;
    }
    return ahead;
  } finally {
    await memory.close();
    await rm(dir, { recursive: true });
  }
}
