import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { createHash } from 'node:crypto';

/** Nothing is known of it yet; code that passed its tests starts at 1. */
const RATE_AT_FIRST = 0.5;

/** A procedure in words: its prompt is its description, and nothing in it is run. */
export function wordedProcedure({ scope, name, version }: Pick<Skill, 'scope' | 'name' | 'version'>, prompt: string, at: number): Skill {
  return {
    name,
    version,
    scope,
    kind: 'procedure',
    description: prompt,
    code: '',
    entryPoint: null,
    parameters: [],
    tests: [],
    tags: [],
    cues: [],
    fingerprints: [],
    status: 'active',
    statusReason: 'told in words',
    evidence: [],
    digest: digestOf(prompt),
    sources: [],
    model: null,
    scripted: false,
    executionCount: 0,
    successRate: RATE_AT_FIRST,
    createdAt: at,
    updatedAt: at,
  };
}

/** The same procedure with other words, and with its history. @throws EtudeError FAILED_PRECONDITION for a skill with code */
export function rewordedProcedure(skill: Skill, prompt: string, at: number): Skill {
  if (skill.kind !== 'procedure') {
    throw new EtudeError('FAILED_PRECONDITION', `${skill.name} is a skill with code; store the procedure under another name`);
  }
  return { ...skill, description: prompt, digest: digestOf(prompt), updatedAt: Math.max(skill.updatedAt, at) };
}

function digestOf(prompt: string): string {
  return createHash('sha256').update(prompt).digest('hex');
}
