import { SECRET_RULE_PREFIX, type SkillFinding } from '@etude/contracts/skill-proof';
import { lintSource } from '@secretlint/core';
import { creator } from '@secretlint/secretlint-rule-preset-recommend';

const AWS_IDS = { id: '@secretlint/secretlint-rule-aws', options: { enableIDScanRule: true } };
const RULES = [{ id: '@secretlint/secretlint-rule-preset-recommend', rule: creator, options: {}, rules: [AWS_IDS] }];

/** Finds keys and passwords in a text. A message names the kind of secret and never shows it. */
export async function findSecrets(text: string): Promise<readonly SkillFinding[]> {
  const { messages } = await lintSource({
    // Disables comments that turn a rule off, and keeps the text's length.
    source: { filePath: '/skill.py', content: text.replaceAll(/secretlint-/gi, 'secretlint_'), contentType: 'text', ext: '.py' },
    options: { noPhysicFilePath: true, maskSecrets: true, config: { rules: RULES } },
  });
  const found = messages.map(({ ruleId, messageId, message, loc }) => ({
    analyser: 'secretlint',
    rule: `${SECRET_RULE_PREFIX}${ruleId.replace(/^.*secretlint-rule-/, '')}`,
    severity: 'error' as const,
    line: loc.start.line,
    message: message.includes('*') ? `found a secret: ${messageId}` : message,
  }));
  const lines = new Set<number | null>(found.map(({ line }) => line));
  return [...found, ...serviceKeys(text).filter(({ line }) => !lines.has(line))];
}

/** The form of keys of model services: `sk-`, often followed by a kind such as `proj-`; 32 characters or more. */
const SERVICE_KEY = /(?<![\w-])sk-[\w-]{29,}/g;

/** Finds keys in newer or older forms than secretlint's rules for OpenAI and Anthropic. */
function serviceKeys(text: string): SkillFinding[] {
  return text.split('\n').flatMap((line, index) => {
    if (!(line.match(SERVICE_KEY) ?? []).some(isRandom)) return [];
    return [
      {
        analyser: 'etude',
        rule: `${SECRET_RULE_PREFIX}service-key`,
        severity: 'error',
        line: index + 1,
        message: 'found a secret: key of a service',
      },
    ];
  });
}

/** Whether a part mixes letters and digits over 12 characters or more. Words joined by hyphens and placeholders do not. */
const isRandom = (key: string) => key.split(/[-_]/).some((part) => part.length >= 12 && /\d/.test(part) && /[a-z]/i.test(part));
