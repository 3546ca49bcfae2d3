import { Buffer } from 'node:buffer';
import type { Skill } from '@etude/contracts/memory';
import { type SkillFinding, SECRET_RULE_PREFIX } from '@etude/contracts/skill-proof';
import type { CodeAnalyser } from '../../ports/code-analyser.js';

/** What its author says of a skill. */
const WORDS = ['description', 'displayName', 'category', 'tags', 'examplePrompts', 'parameters', 'metadata'] as const;

type Analysed = Pick<Skill, 'kind' | 'code' | 'tests'> & Partial<Skill>;

/**
 * Findings about all that a skill brings along: its code, which of a procedure is text; its tests and all that is said of it, for
 * secrets; and its files, Python ones as code. Those about a file name it, and have no line of the code.
 *
 * @throws what the analyser throws
 */
export async function analyseSkill(skill: Analysed, analyser: CodeAnalyser, signal: AbortSignal): Promise<readonly SkillFinding[]> {
  const { kind, code, tests, heldOut = [], files = [] } = skill;
  const found = [...(await analyser.analyse(code, signal, kind === 'procedure' ? 'text' : 'python'))];
  const all = [...tests, ...heldOut];
  if (all.length > 0) found.push(...placed('tests', await analyser.analyse(JSON.stringify(all, null, 1), signal, 'text')));
  // Line breaks of texts stay: some keys are recognised by them.
  const words = [...WORDS.map((field) => skill[field]), files.map(({ path }) => path)];
  const said = words.map((value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1))).join('\n');
  found.push(...placed('its words', await analyser.analyse(said, signal, 'text')));
  for (const { path, contentBase64 } of files) {
    const text = Buffer.from(contentBase64, 'base64').toString('utf8');
    // Bytes that are no text hold no key that anybody could read in them.
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

/** Those that are keys or passwords: a secret in a registry is a secret that leaked. */
export function secretFindings(findings: readonly SkillFinding[]): readonly SkillFinding[] {
  return findings.filter(({ rule }) => rule.startsWith(SECRET_RULE_PREFIX));
}
