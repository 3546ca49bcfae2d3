import { Buffer } from 'node:buffer';
import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { SkillFinding } from '@etude/contracts/skill-proof';
import { expect, it } from 'vitest';
import { analyseSkill } from './verify-skill.js';

const finding: SkillFinding = { analyser: 'a', rule: 'secret/x', severity: 'error', line: 3, message: 'found' };
const { signal } = new AbortController();

function asked() {
  const calls: string[] = [];
  const analyse = async (text: string, _signal?: AbortSignal, language?: string) => {
    calls.push(`${language}: ${text}`);
    return text.includes('SECRET') ? [finding] : [];
  };
  return { calls, analyser: { analyse } };
}
const file = (path: string, text: string) => ({ path, contentBase64: Buffer.from(text).toString('base64') });
const test: SkillTest = { kind: 'python', setup: '', tests: 'SECRET' };

it('analyses code as Python and a procedure as text', async () => {
  const { calls, analyser } = asked();
  await analyseSkill({ kind: 'function', code: 'a', tests: [] }, analyser, signal);
  await analyseSkill({ kind: 'procedure', code: 'b', tests: [] }, analyser, signal);
  expect(calls.filter((call) => /[ab]$/.test(call))).toEqual(['python: a', 'text: b']);
});

it('analyses files and tests, and names the place of a finding', async () => {
  const { calls, analyser } = asked();
  const files = [file('scripts/x.py', 'SECRET'), file('notes.md', 'fine'), file('logo.png', '\0SECRET')];
  const found = await analyseSkill({ kind: 'procedure', code: '', tests: [], heldOut: [test], files }, analyser, signal);
  expect(found.map(({ line, message }) => [line, message])).toEqual([
    [null, 'tests, line 3: found'],
    [null, 'scripts/x.py, line 3: found'],
  ]);
  expect(calls.slice(-2)).toEqual(['python: SECRET', 'text: fine']);
});

it.each<[string, Partial<Skill>]>([
  ['description', { description: 'SECRET' }],
  ['display name', { displayName: 'SECRET' }],
  ['category', { category: 'SECRET' }],
  ['tags', { tags: ['SECRET'] }],
  ['example prompts', { examplePrompts: ['log in with SECRET'] }],
  ['parameters', { parameters: [{ name: 'a', type: '', description: 'SECRET', required: true }] }],
  ['metadata', { metadata: { note: 'SECRET' } }],
  ['file names', { files: [file('SECRET.md', 'fine')] }],
])('searches the words about a skill for secrets: %s', async (_place, said) => {
  const found = await analyseSkill({ kind: 'function', code: '', tests: [], ...said }, asked().analyser, signal);
  expect(found.map(({ message }) => message)).toEqual(['its words, line 3: found']);
});
