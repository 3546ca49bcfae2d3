import { PositionEncoding, Workspace } from '@astral-sh/ruff-wasm-nodejs';
import type { Diagnostic } from '@astral-sh/ruff-wasm-nodejs';
import type { SkillFinding } from '@etude/contracts/skill-proof';
import { API_KINDS, HIDDEN_NAMES, RUFF, RUFF_RULES, RUFF_SEVERITY } from './rules.js';

export type FindInText = (text: string) => Promise<readonly SkillFinding[]>;

/**
 * Ruff, loaded once. A text that is nested too deep throws, and leaves its memory in no state to go on with.
 *
 * Preview, because only there functions are found that are passed on and not called, as in `map(eval, lines)`; it also names
 * rules instead of numbering them.
 */
export function pythonAnalyser(): FindInText {
  const banned = Object.entries(API_KINDS).flatMap(([kind, { apis }]) => apis.map((api) => [api, { msg: kind }] as const));
  const options = {
    'target-version': 'py314',
    lint: {
      preview: true,
      'explicit-preview-rules': true,
      ...RUFF_RULES,
      'flake8-tidy-imports': { 'banned-api': Object.fromEntries(banned) },
    },
  };
  const workspace = new Workspace(options, PositionEncoding.Utf32);
  return async (code) => {
    const diagnostics = workspace.check(unsuppressed(code)) as Diagnostic[];
    return [...diagnostics.map(findingOf), ...hiddenNames(code)];
  };
}

/** The same text, at the same places, without the comments by which code would ask not to be looked at. */
function unsuppressed(code: string): string {
  return code
    .replaceAll(/noqa/gi, 'n0qa')
    .replaceAll(/(#[^\S\n]*)(?:ruff|isort|flake8|pylint)(?=[^\S\n]*:)/gi, (all) => all.replace(/\w/g, '_'));
}

function findingOf({ code, message, start_location: { row } }: Diagnostic): SkillFinding {
  const rule = code ?? 'invalid-syntax';
  const kind = rule === 'banned-api' ? /^(.+) is banned: (\S+)$/s.exec(message) : null;
  const api = kind && API_KINDS[kind[2]!];
  if (api) return { analyser: RUFF, rule: kind[2]!, severity: api.severity, line: row, message: `${kind[1]} ${api.message}` };
  return { analyser: RUFF, rule, severity: RUFF_SEVERITY[rule] ?? 'warning', line: row, message };
}

/** Python reads names in this normal form: letters that look otherwise are the same name. */
function hiddenNames(code: string): SkillFinding[] {
  return code.split('\n').flatMap((line, index) =>
    [...new Set(line.normalize('NFKC').match(HIDDEN_NAMES))].map((name) => ({
      analyser: 'etude',
      rule: 'dynamic-code',
      severity: 'error' as const,
      line: index + 1,
      message: `\`${name}\` reaches code that is not in the text`,
    })),
  );
}
