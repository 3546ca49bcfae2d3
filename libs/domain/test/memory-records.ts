import type { DocumentChunk, DocumentRecord, Episode, Fact, Scope, Skill, Transition } from '@etude/contracts/memory';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { factId } from '../src/facts/fact-plan.js';
import type { AgentSettingsReader } from '../src/ports/agent-settings.js';
import type { MemoryHit, CountedUse } from '../src/ports/memory.js';
import { skillDigest } from '../src/skills/content-digest.js';

export const SCOPE: Scope = { tenant: 'acme', agent: 'coder', user: null };
/** 2026-01-01, in ms since 1970. */
export const NEW_YEAR = 1_767_225_600_000;

/** The fields that an attempt and its episode share. */
const SOLVED = {
  scope: SCOPE,
  taskId: 'tabcdefgh',
  rolloutId: 'tabcdefgh-r1',
  prompt: 'Sum the even numbers of a list.',
  fingerprint: 'f1',
  model: 'm',
  scripted: false,
  createdAt: NEW_YEAR,
};

export function transitionOf(changes: Partial<Transition> = {}): Transition {
  return {
    id: 'tabcdefgh-r1.a1',
    ...SOLVED,
    attempt: 1,
    critique: null,
    draft: null,
    recalled: [],
    thought: 'Filter, then sum.',
    code: 'def total(xs): return sum(x for x in xs if x % 2 == 0)',
    feedback: 'all cases passed',
    verdict: 'AC',
    reason: 'all cases passed',
    casesPassed: 3,
    casesTotal: 3,
    skill: null,
    inputTokens: 10,
    outputTokens: 20,
    costUsd: 0,
    ...changes,
  };
}

export function episodeOf(changes: Partial<Episode> = {}): Episode {
  return {
    id: 'tabcdefgh-r1',
    ...SOLVED,
    evaluatorKind: 'function_cases',
    entryPoint: 'total',
    code: 'def total(xs): ...',
    summary: 'Filtered the even ones and summed them.',
    reflection: null,
    success: true,
    importance: 0.5,
    skillsUsed: [],
    attempts: 1,
    ...changes,
  };
}

export function factOf(changes: Partial<Fact> = {}): Fact {
  return {
    id: 'fact-1',
    scope: SCOPE,
    text: 'Input ends with an empty line.',
    category: 'general',
    confidence: 0.8,
    source: 'experience',
    episodes: ['e1'],
    support: 1,
    accessCount: 0,
    createdAt: NEW_YEAR,
    ...changes,
  };
}

/** A fact with the id that is made from its owner and text. */
export function storedFactOf(changes: Partial<Fact> = {}): Fact {
  const fact = factOf(changes);
  return { ...fact, id: factId(fact.scope, fact.text) };
}

export const documentOf = (texts: readonly string[], changes: Partial<DocumentRecord> = {}): DocumentRecord => ({
  id: 'd1',
  scope: SCOPE,
  name: 'guide.md',
  title: 'Guide to brewing',
  mediaType: 'text/markdown',
  digest: texts.join('|'),
  bytes: 10,
  chunks: texts.length,
  createdAt: NEW_YEAR,
  ...changes,
});
export const chunksOf = (document: DocumentRecord, texts: readonly string[]): DocumentChunk[] =>
  texts.map((text, index) => ({
    id: `${document.id}.${index}`,
    scope: document.scope,
    documentId: document.id,
    index,
    headings: ['Water'],
    page: null,
    text,
    createdAt: NEW_YEAR,
  }));

export function hitOf(changes: Partial<MemoryHit> & Pick<MemoryHit, 'id'>): MemoryHit {
  const { id } = changes;
  return {
    layer: 'episodic',
    kind: 'transition',
    title: id,
    text: id,
    score: 1,
    similarity: 0.8,
    agent: 'coder',
    createdAt: 1,
    sources: [],
    ...changes,
  };
}

/** A skill with the digest of its content, unless `changes` has another digest. */
export function skillOf(changes: Partial<Skill> = {}): Skill {
  const skill = {
    name: 'sum_even',
    version: 1,
    scope: SCOPE,
    kind: 'function',
    description: 'Sums the even numbers of a list.',
    code: 'def total(xs): ...',
    entryPoint: 'total',
    parameters: [],
    tests: [{ kind: 'call', args: [[1, 2]], kwargs: {}, expected: 2, tolerance: 0 }],
    tags: [],
    cues: ['Add up all even values'],
    fingerprints: ['f1'],
    status: 'candidate',
    statusReason: '',
    evidence: [],
    sources: ['tasks/tabcdefgh'],
    model: 'm',
    scripted: false,
    executionCount: 0,
    successRate: 1,
    createdAt: NEW_YEAR,
    updatedAt: NEW_YEAR,
    ...changes,
  } satisfies Omit<Skill, 'digest'>;
  return { ...skill, digest: changes.digest ?? skillDigest(skill) };
}

export function skillUseOf(changes: Partial<CountedUse> = {}): CountedUse {
  return {
    kind: 'skill_use',
    scope: SCOPE,
    name: 'sum_even',
    version: 1,
    success: true,
    fingerprint: 'f2',
    cue: 'Total of the even entries',
    at: NEW_YEAR + 1,
    ...changes,
  };
}

export const settingsOf = (given: Partial<ProceduralMemorySettings>): AgentSettingsReader => {
  const settings = ProceduralMemorySettings.parse(given);
  return {
    get: async (_tenant, agent) => ({ agent, settings, strategy: 'attempts', mcpServers: [], isSet: true, updatedAt: 1, etag: '' }),
  };
};
