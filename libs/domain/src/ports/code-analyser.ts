import type { SkillFinding } from '@etude/contracts/skill-proof';

/**
 * Static findings about a skill's code: dangerous calls, network use, secrets. Nothing of the code is run.
 *
 * An error from an analyser that fell over is one finding of severity "error" that says so, never silence.
 * Not in it: deciding what follows from a finding.
 */
export interface CodeAnalyser {
  /** @param language Python by default; "text": secrets only, as in a procedure or a file beside the code */
  analyse(code: string, signal?: AbortSignal, language?: 'python' | 'text'): Promise<readonly SkillFinding[]>;
}
