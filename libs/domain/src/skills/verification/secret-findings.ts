import { SECRET_RULE_PREFIX, type SkillFinding } from '@etude/contracts/skill-proof';

/** Those that are keys or passwords: a secret in a registry is a secret that leaked. */
export function secretFindings(findings: readonly SkillFinding[]): readonly SkillFinding[] {
  return findings.filter(({ rule }) => rule.startsWith(SECRET_RULE_PREFIX));
}
