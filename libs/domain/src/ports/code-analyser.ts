import type { SkillFinding } from '@etude/contracts/skill-proof';

/**
 * Finds dangerous calls, network use and secrets in a skill's code without running it.
 *
 * If the analyser crashes, it returns one finding of severity "error" that says so, never an empty list.
 * Not in it: deciding what follows from a finding.
 */
export interface CodeAnalyser {
  /** @param language Python by default; "text" looks for secrets only, as in a procedure or a file beside the code */
  analyse(code: string, signal?: AbortSignal, language?: 'python' | 'text'): Promise<readonly SkillFinding[]>;
}
