import { Buffer } from 'node:buffer';
import type { Skill } from '@etude/contracts/memory';
import { type SkillFinding, SECRET_RULE_PREFIX } from '@etude/contracts/skill-proof';
import type { CodeAnalyser } from '../../ports/code-analyser.js';

/** Fields in which the author describes a skill. */
const WORDS = ['description', 'displayName', 'category', 'tags', 'examplePrompts', 'parameters', 'metadata'] as const;

type Analysed = Pick<Skill, 'kind' | 'code' | 'tests'> & Partial<Skill>;

/**
 * Analyses a skill's code, tests, descriptions and files. Python code is analysed as such. Tests, descriptions, other files and a
 * procedure's code are searched for secrets as text. A finding outside the code names its place in the message and has no line.
 *
 * @throws what the analyser throws
 */
export async function analyseSkill(skill: Analysed, analyser: CodeAnalyser, signal: AbortSignal): Promise<readonly SkillFinding[]> {
  const { kind, code, tests, heldOut = [], files = [] } = skill;
  const found = [...(await analyser.analyse(code, signal, kind === 'procedure' ? 'text' : 'python'))];
  const all = [...tests, ...heldOut];
  if (all.length > 0) found.push(...placed('tests', await analyser.analyse(JSON.stringify(all, null, 1), signal, 'text')));
  // Line breaks are kept, since some keys are recognised by them.
  const words = [...WORDS.map((field) => skill[field]), files.map(({ path }) => path)];
  const said = words.map((value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1))).join('\n');
  found.push(...placed('its words', await analyser.analyse(said, signal, 'text')));
  for (const { path, contentBase64 } of files) {
    const text = Buffer.from(contentBase64, 'base64').toString('utf8');
    // Binary files are skipped: they hold no readable key.
    if (text.includes('\0')) continue;
    const isTest = path.startsWith('tests/');
    found.push(...placed(path, await analyser.analyse(text, signal, path.endsWith('.py') && !isTest ? 'python' : 'text')));
  }
  return found;
}

function placed(place: string, findings: readonly SkillFinding[]): SkillFinding[] {
  return findings.map((finding) => ({
    ...finding,
    line: null,
    message: `${place}${finding.line === null ? '' : `, line ${finding.line}`}: ${finding.message}`,
  }));
}

/** The findings that are keys or passwords. A secret in a registry counts as leaked. */
export function secretFindings(findings: readonly SkillFinding[]): readonly SkillFinding[] {
  return findings.filter(({ rule }) => rule.startsWith(SECRET_RULE_PREFIX));
}
