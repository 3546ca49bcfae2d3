import type { Embedder } from '@etude/domain/ports/model';
import { openMemory } from '@etude/memory/open-memory';
import { embedderFrom, embedderConfig } from '@etude/model/model-config';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Dialogue, DIALOGUES, makeDialogue } from './dialogues.js';

const LOOKED = 10;
const BATCH = 200;

/**
 * Asks questions about five dialogues of 22 sessions. The figures are shares of questions for which the first ten hits have all turns with
 * the answer: of all questions, of questions answered by one turn, and by two turns. Also measures with each turn stored as a fact.
 */
export async function conversationFigures(say: (text: string) => void): Promise<Record<string, number>> {
  const embedder = await embedderFrom(embedderConfig.parse(process.env));
  say(`questions about dialogues, with ${embedder.profile.model} ...`);
  const counts = { hits: 0, questions: 0, one: 0, ones: 0, two: 0, twos: 0, facts: 0, turns: 0, lost: 0 };
  for (const [seed, name] of DIALOGUES.entries()) {
    const dialogue = makeDialogue(name, seed + 1);
    const asTurns = await ranked(embedder, dialogue, 'turns');
    const asFacts = await ranked(embedder, dialogue, 'facts');
    counts.turns += dialogue.messages.length;
    counts.lost += dialogue.messages.length - asTurns.stored;
    for (const [at, { evidence }] of dialogue.questions.entries()) {
      const isFound = evidence.every((place) => asTurns.found[at]!.includes(place));
      counts.questions += 1;
      counts.hits += Number(isFound);
      counts[evidence.length === 1 ? 'ones' : 'twos'] += 1;
      counts[evidence.length === 1 ? 'one' : 'two'] += Number(isFound);
      counts.facts += Number(evidence.every((place) => asFacts.found[at]!.includes(place)));
    }
  }
  return {
    conversation_turns: counts.turns,
    conversation_turns_lost: counts.lost,
    conversation_questions: counts.questions,
    conversation_hits_at_10: counts.hits,
    conversation_hits_at_10_one_turn: counts.one,
    conversation_questions_one_turn: counts.ones,
    conversation_hits_at_10_two_turns: counts.two,
    conversation_questions_two_turns: counts.twos,
    conversation_hits_at_10_as_facts: counts.facts,
  };
}

/** Places of the turns that each question finds. The dialogue has its own memory. */
async function ranked(embedder: Embedder, { name, messages, questions }: Dialogue, as: 'turns' | 'facts') {
  const dir = mkdtempSync(join(tmpdir(), 'etude-dialogues-'));
  const memory = await openMemory({ store: { adapter: 'sqlite', path: join(dir, 'memory.sqlite') }, embedder });
  const scope = { tenant: 'bench', agent: 'bench', user: null };
  const reader = { tenant: 'bench', agent: null };
  const at = Date.now();
  try {
    const addition = { scope, name, title: '', writeId: name, at };
    if (as === 'turns')
      for (let first = 0; first < messages.length; first += BATCH)
        await memory.conversations.add({ ...addition, messages: messages.slice(first, first + BATCH), first });
    else
      for (const [place, { name: speaker, role, text }] of messages.entries()) {
        const fact = {
          id: '',
          scope,
          text: `${speaker || role}: ${text}`,
          category: `${place}`,
          confidence: 1,
          source: 'told',
          episodes: [],
        };
        await memory.semantic.store(`w${place}`, { ...fact, support: 1, accessCount: 0, createdAt: at });
      }
    const kinds = [as === 'turns' ? 'turn' : 'fact'] as const;
    const found: number[][] = [];
    for (const { text } of questions) {
      const hits = await memory.semantic.search(reader, { text, limit: LOOKED, kinds, relevantOnly: true });
      found.push(hits.map((hit) => hit.turn?.index ?? Number(hit.title)));
    }
    return { found, stored: await memory.store.count({ tenant: 'bench' }, 'semantic', { kinds }) };
  } finally {
    await memory.close();
    rmSync(dir, { recursive: true, force: true });
  }
}
