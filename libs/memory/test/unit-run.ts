import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { consolidate, type ConsolidationDeps } from '@etude/domain/consolidation/consolidate';
import type { ConsolidationReport } from '@etude/domain/ports/consolidation-units';
import type { ChatModel } from '@etude/domain/ports/model';
import { episodeOf, NEW_YEAR, SCOPE } from '@etude/domain/testing/memory-records';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Memory } from '../src/memory.js';
import { memoryOver } from '../src/open-memory.js';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';

export const NOW = NEW_YEAR + 86_400_000;

const solved = (id: string, prompt: string, code: string) =>
  episodeOf({
    id: `${id}-r1.episode`,
    scope: SCOPE,
    rolloutId: `${id}-r1`,
    prompt,
    fingerprint: prompt,
    evaluatorKind: 'io_cases',
    entryPoint: null,
    code,
    tests: [{ kind: 'io', stdin: '2', expectedStdout: '4', comparison: 'whitespace', tolerance: 0 }],
    createdAt: NOW - 1_000,
  });

/** Two tasks that an agent solved twice each, and two facts that it knows. */
export async function fillForRun(memory: Memory, told: (text: string, subject?: string) => Promise<unknown>): Promise<void> {
  for (const [task, prompt, code] of [
    ['tdouble', 'Double the number.', 'print(int(input()) * 2)'],
    ['tsquare', 'Square a word quietly.', 'print(int(input()) ** 2)'],
  ] as const)
    for (const n of ['1', '2']) await memory.episodic.storeEpisode(solved(`${task}${n}`, prompt, code));
  await told('The order is free', 'Double the number.');
  await told('Mind the order: Square a word quietly.');
}

/** Called with each effect that outlives the process, such as a write. */
export type Effect = <T>(work: Promise<T> | T) => Promise<T>;

/** Keeps values in a file, as a run's record keeps them in Redis. */
function kept<T>(dir: string, name: string, effect: Effect) {
  const file = join(dir, name);
  const read = () => (existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, T>) : {});
  return {
    get: async (key: string): Promise<T | null> => read()[key] ?? null,
    put: (key: string, value: T) => effect(writeFileSync(file, JSON.stringify({ ...read(), [key]: value }))),
  };
}

const scripted = (dir: string): ChatModel => ({
  async chat({ messages }) {
    appendFileSync(join(dir, 'calls'), 'x');
    const task = /"task":"([^"]*)/.exec(messages.at(-1)?.content ?? '')?.[1] ?? '';
    const text = JSON.stringify({
      facts: [{ text: `Mind the order: ${task}`, subject: task }],
      skill: { description: task, scenarios: [] },
    });
    return { text, finishReason: 'stop', model: 'scripted', scripted: true, inputTokens: 7, outputTokens: 3, costUsd: 0 };
  },
});

async function run(memory: Memory, dir: string, effect: Effect): Promise<void> {
  const [lines, answers] = [kept<never>(dir, 'lines', effect), kept<never>(dir, 'answers', effect)];
  const writes = kept<object>(dir, 'outbox', effect);
  const report: ConsolidationReport = {
    line: lines.get,
    putLine: (line) => lines.put(line.agent, line as never),
    answer: answers.get,
    putAnswer: (key, answer) => answers.put(key, answer as never),
    progress: async () => {},
  };
  const settings = ProceduralMemorySettings.parse({ enabled: true, autoRegisterSkills: true });
  const deps: ConsolidationDeps = {
    ...memory,
    report,
    embedder: new LexicalEmbedder(),
    model: scripted(dir),
    mayStore: async () => true,
    settledStatuses: async () => [],
    settings: {
      get: async (_tenant, agent) => ({ agent, settings, strategy: 'attempts', mcpServers: [], isSet: true, updatedAt: 1, etag: '' }),
    },
    outbox: { put: async (_tenant, id, write) => ((await writes.get(id)) === null ? writes.put(id, write) : undefined) },
  };
  const budget = { modelCallsMax: 0, tokensMax: 0 };
  const input = { run: 'c1', tenant: 'acme', agent: null, days: 7, dryRun: false, now: NOW, budget };
  await consolidate(input, deps, new AbortController().signal);
}

/** Consolidates the memory in a directory, or undoes the consolidation. */
export async function work(role: 'run' | 'undo', dir: string, effect: Effect): Promise<void> {
  const embedder = new LexicalEmbedder();
  const { model, dimension } = embedder.profile;
  const bare = await openSqliteStore({ path: join(dir, 'memory.db'), model: { name: model, dimension } });
  const store = { ...bare, write: async (...asked: Parameters<typeof bare.write>) => effect(bare.write(...asked)) };
  const memory = memoryOver(store, { embedder, clock: { now: () => NOW } });
  if (role === 'run') await run(memory, dir, effect);
  else await memory.units.undo({ tenant: 'acme', run: 'c1', agent: null, by: 'ann' });
  await memory.close();
}
