import type { Skill } from '@etude/contracts/memory';
import type { WantedSkill } from '@etude/contracts/skill-proof';
import { skillDigest } from '../content-digest.js';
import type { WrittenSkill } from './write-skill.js';

export interface Writer {
  readonly model: string | null;
  readonly scripted: boolean;
  /** ms since 1970 */
  readonly at: number;
  /** Name of the reviewer who asked for it; null where nobody vouches for the words that it was written by. */
  readonly vouchedBy: string | null;
}

/** A candidate of what was written for a wish. Unless a reviewer asked for it, it is not trusted: it waits for review. */
export function requestedSkill(wanted: WantedSkill, written: WrittenSkill, { model, scripted, at, vouchedBy }: Writer): Skill {
  const source = `wantedSkills/${wanted.id}`;
  const { code, entry_point: entryPoint, description, parameters, tests, tags } = written;
  const skill: Omit<Skill, 'digest'> = {
    name: wanted.skill,
    version: 1,
    scope: { tenant: wanted.tenant, agent: wanted.agent, user: wanted.user },
    kind: 'function',
    description,
    code,
    entryPoint,
    parameters: parameters.map(({ default_value: defaultValue, ...one }) => (defaultValue === undefined ? one : { ...one, defaultValue })),
    tests: tests.map((test) => ({ kind: 'call' as const, ...test })),
    tags: [...new Set(tags)],
    cues: [],
    fingerprints: [],
    status: 'candidate',
    statusReason: `written for ${source}`,
    evidence: [],
    sources: [source],
    model,
    scripted,
    executionCount: 0,
    successRate: 1,
    createdAt: at,
    updatedAt: at,
    origin: 'request',
    ...(vouchedBy === null ? { untrusted: [`it was written by a model for ${source}, for whose words nobody vouches`] } : {}),
  };
  return { ...skill, digest: skillDigest(skill) };
}
