import type { SkillFinding } from '@etude/contracts/skill-proof';

/**
 * Static findings about a skill's code: dangerous calls, network use, secrets. Nothing of the code is run.
 *
 * An error from an analyser that fell over is one finding of severity "error" that says so, never silence.
 * Not in it: deciding what follows from a finding.
 */
export interface CodeAnalyser {
  analyse(code: string, signal?: AbortSignal): Promise<readonly SkillFinding[]>;
}
