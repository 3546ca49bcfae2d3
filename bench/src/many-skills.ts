import { setImmediate as turn } from 'node:timers/promises';
import { Skill } from '@etude/contracts/memory';
import type { SkillContract } from '@etude/contracts/skill-proof';
import type { ProofSigner } from '@etude/domain/ports/verification';
import { NOTHING_FOUND, signProof } from '@etude/domain/skills/proof/proof';
import { skillDigest } from '@etude/domain/skills/content-digest';
import { openMemory } from '@etude/memory/open-memory';
import { embedderConfig, embedderFrom } from '@etude/model/model-config';
import { spread } from './figures.js';

const ACTIONS = [
  'parse',
  'sort',
  'count',
  'merge',
  'split',
  'filter',
  'format',
  'check',
  'convert',
  'sum',
  'group',
  'rank',
  'find',
  'clean',
];
const THINGS = [
  'invoices',
  'dates',
  'names',
  'orders',
  'numbers',
  'words',
  'tables',
  'paths',
  'colours',
  'prices',
  'routes',
  'events',
  'codes',
];
const WAYS = [
  'by size',
  'by country',
  'without repeats',
  'from text',
  'as a table',
  'in reverse',
  'within limits',
  'by their first letter',
  'per day',
];
const WIDTH = 8;

/** These skills are only searched for, not run, so their signatures are never checked. */
const NOBODY: ProofSigner = { keyId: 'bench', sign: () => '' };

const pick = (list: readonly string[], i: number) => list[i % list.length] ?? '';

export function purpose(i: number): string {
  const [action, thing, way] = [pick(ACTIONS, i), pick(THINGS, Math.floor(i / ACTIONS.length)), pick(WAYS, Math.floor(i / 182))];
  return `${action} ${thing} ${way}, case ${i}`;
}

function skillAt(i: number, agent: string): Skill {
  const name = `skill_${i}`;
  const skill = Skill.parse({
    name,
    version: 1,
    scope: { tenant: 'test', agent, user: null },
    kind: 'function',
    description: `Helps to ${purpose(i)}.`,
    code: `def ${name}(value: int) -> int:\n    return value + ${i}\n`,
    entryPoint: name,
    tests: [{ kind: 'call', args: [1], kwargs: {}, expected: 1 + i, tolerance: 0 }],
    cues: [purpose(i)],
    fingerprints: [`fingerprint-${i}`],
    status: 'candidate',
    digest: '',
    sources: [],
    model: null,
    scripted: false,
    createdAt: i,
    updatedAt: i,
  });
  return { ...skill, digest: skillDigest(skill) };
}

const CONTRACT: SkillContract = { parameters: [], inputSchema: { type: 'object' }, outputSchema: null, signature: '', docstring: '' };

/** Writes active skills straight into the memory that services have open. */
export async function fillSkills(path: string, agent: string, count: number): Promise<void> {
  const embedder = await embedderFrom(embedderConfig.parse({ ETUDE_EMBEDDER: 'lexical' }));
  const memory = await openMemory({ store: { adapter: 'sqlite', path }, embedder });
  try {
    await spread(count, WIDTH, async (i) => {
      const stored = await memory.procedural.store(skillAt(i, agent));
      const { name, version, digest } = stored;
      const key = { tenant: 'test', agent, name, version, digest };
      const told = { key, by: 'bench', reason: 'made for a benchmark', at: 1 };
      const proof = signProof(stored, NOTHING_FOUND, NOBODY, 1);
      await memory.procedural.move([{ ...told, to: 'verified', proof, contract: CONTRACT }]);
      await memory.procedural.move([{ ...told, to: 'active' }]);
      await turn(); // lets this process answer the pings of gateways, which would otherwise close the connection
    });
  } finally {
    await memory.close();
  }
}
