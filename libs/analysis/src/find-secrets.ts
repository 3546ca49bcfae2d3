import { SECRET_RULE_PREFIX, type SkillFinding } from '@etude/contracts/skill-proof';
import { lintSource } from '@secretlint/core';
import { creator } from '@secretlint/secretlint-rule-preset-recommend';
import { SECRETLINT } from './rules.js';

const RULES = [{ id: '@secretlint/secretlint-rule-preset-recommend', rule: creator, options: {} }];

/** Keys and passwords in a text. A message names the kind of secret and never shows it. */
export async function findSecrets(text: string): Promise<readonly SkillFinding[]> {
  const { messages } = await lintSource({
    // Of the same length, so that a comment that turns a rule off is none.
    source: { filePath: '/skill.py', content: text.replaceAll(/secretlint-/gi, 'secretlint_'), contentType: 'text', ext: '.py' },
    options: { noPhysicFilePath: true, maskSecrets: true, config: { rules: RULES } },
  });
  return messages.map(({ ruleId, messageId, message, loc }) => ({
    analyser: SECRETLINT,
    rule: `${SECRET_RULE_PREFIX}${ruleId.replace(/^.*secretlint-rule-/, '')}`,
    severity: 'error',
    line: loc.start.line,
    message: message.includes('*') ? `found a secret: ${messageId}` : message,
  }));
}
