import { SECRET_RULE_PREFIX, type SkillFinding } from '@etude/contracts/skill-proof';
import { rules } from '@secretlint/secretlint-rule-preset-recommend';

/** A secret in a text, from the character `from` up to `to`, not included. */
interface Secret {
  readonly rule: string;
  readonly kind: string;
  readonly from: number;
  readonly to: number;
}

type Context = Parameters<(typeof rules)[number]['create']>[0];
type Source = Parameters<NonNullable<ReturnType<(typeof rules)[number]['create']>['file']>>[0];

/** The rules add their findings to this list. The rules are synchronous, so only one text is searched at a time. */
let reported: Secret[] = [];

/**
 * Secretlint's rules, called without its core: the core takes half a millisecond for each text, and obeys comments that turn a rule off.
 * AWS key ids are found as well, although the preset leaves them out.
 */
const finders = rules
  .filter(({ meta }) => meta.type === 'scanner')
  .map((rule) => {
    const name = rule.meta.id.replace(/^.*secretlint-rule-/, '');
    const context: Context = {
      sharedOptions: {},
      createTranslator: () => (messageId, data) => ({ messageId: String(messageId), message: '', data }),
      report: ({ message, range: [from, to] }) => reported.push({ rule: name, kind: message.messageId, from, to }),
      ignore: () => undefined,
    };
    return rule.create(context, name === 'aws' ? { enableIDScanRule: true } : {});
  });

const BREAK = String.raw`(?:\\+[nr]|\s)`;
const LINE = '[A-Za-z0-9+/=]';
/** The first line of a private key, its headers, its other lines, and its last line if it has one. Secretlint finds only whole keys. */
const PRIVATE_KEY = new RegExp(
  [
    '-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----',
    String.raw`(?:${BREAK}|[A-Za-z-]{3,20}: [^\n\\]{0,200}(?:\\n|\n)){0,20}`,
    `${LINE}{32,}(?:${BREAK}+${LINE}{16,})*`,
    `(?:${BREAK}*${LINE}{0,80}${BREAK}*-----END [A-Z0-9 ]{0,40}-----)?`,
  ].join(''),
  'g',
);

/** Forms of keys that secretlint misses, always or at times. A form matches only the key itself. */
const FORMS: Readonly<Record<string, RegExp>> = {
  'private-key': PRIVATE_KEY,
  'service-key': /(?<![A-Za-z0-9-])(?:sk|xai|pplx|nvapi|tvly|xkeysib|pul)-[\w-]{29,}/g,
  'google-key': /(?<![A-Za-z0-9-])(?:AIza[\w-]{35}|GOCSPX-[\w-]{28}|ya29\.[\w-]{30,})(?![\w-])/g,
  'web-token': /(?<![A-Za-z0-9-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/g,
  'bearer-token': /(?<=\bbearer )[\w.~+/-]{20,}/gi,
  'package-registry': /(?<![A-Za-z0-9-])(?:pypi-AgE[\w-]{50,}|rubygems_[0-9a-f]{48})(?![\w-])/g,
  'cloud-key':
    /(?<![A-Za-z0-9-])(?:do[opr]_v1_[0-9a-f]{64}|ATATT3[\w=-]{50,}|HRKU-[\w-]{36,}|dp\.pt\.[A-Za-z0-9]{40,44}|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}|(?<=(?:Account|Access)Key=)[A-Za-z0-9+/]{43,86}={1,2})/g,
  'bot-token': /(?<![A-Za-z0-9-])(?:\d{8,10}:AA[\w-]{33}|[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38}|SK[0-9a-f]{32})(?![\w-])/g,
  'service-token':
    /(?<![A-Za-z0-9-])(?:r8_[A-Za-z0-9]{37}|pscale_(?:tkn|pw|oauth)_[\w.-]{32,}|sntry[su]_[\w+/=-]{40,}|NRAK-[A-Z0-9]{27}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,}|lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10})(?![\w-])/g,
  'age-key': /AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}/g,
};

/** Whether a part of the key has at least 12 characters, letters and digits among them. Words joined by hyphens have no such part. */
const isRandom = (key: string) => key.split(/[-_.]/).some((part) => part.length >= 12 && /\d/.test(part) && /[a-z]/i.test(part));

/** Keys in examples repeat a character, or contain a word such as "dummy". Private keys start with a dash, and may repeat characters. */
const PLACEHOLDER = /^(?!-).*(?:(.)\1{7}|(?:^|[-_:])(?:your|my|example|placeholder|dummy|fake)(?:[-_:]|$)|:(?:pass|passwd|pwd|pw|token)@)/i;

/** The key itself. In an address with a password it is the part before the host, whose name says nothing about the password. */
const ownPart = (key: string) => (key.includes('://') ? key.slice(0, key.lastIndexOf('@') + 1) || key : key);

/** No key of a known form is shorter, so shorter texts need no search. */
const SECRET_CHARS_MIN = 16;

/** The secrets of a text in their order, none inside another. */
function secretsIn(text: string): readonly Secret[] {
  reported = [];
  const source = { content: text, filePath: '/text', ext: '', contentType: 'text' } as unknown as Source;
  for (const finder of finders) void finder.file?.(source);
  const known = reported;
  const more = Object.entries(FORMS).flatMap(([rule, form]) =>
    [...text.matchAll(form)]
      .filter(([key]) => rule === 'private-key' || isRandom(key))
      .map(({ 0: key, index }): Secret => ({ rule, kind: rule, from: index, to: index + key.length })),
  );
  let end = 0;
  return [...known, ...more]
    .filter(({ from, to }) => !PLACEHOLDER.test(ownPart(text.slice(from, to))))
    .toSorted((a, b) => a.from - b.from || b.to - a.to)
    .filter(({ from, to }) => {
      const isApart = from >= end;
      end = Math.max(end, to);
      return isApart;
    });
}

/** Finds keys and passwords of known forms in a text. A message names the kind of secret and never shows it. */
export function findSecrets(text: string): readonly SkillFinding[] {
  return secretsIn(text).map(({ rule, kind, from }) => ({
    analyser: 'secretlint',
    rule: `${SECRET_RULE_PREFIX}${rule}`,
    severity: 'error',
    line: text.slice(0, from).split('\n').length,
    message: `found a secret: ${kind}`,
  }));
}

export function maskSecrets(text: string): string {
  if (text.length < SECRET_CHARS_MIN) return text;
  let end = 0;
  const parts = secretsIn(text).map(({ rule, from, to }) => {
    const before = text.slice(end, from);
    end = to;
    return `${before}[masked: ${rule}]`;
  });
  return parts.join('') + text.slice(end);
}

export function maskSecretsIn<Value>(value: Value): Value {
  if (typeof value === 'string') return maskSecrets(value) as Value;
  if (Array.isArray(value)) return value.map(maskSecretsIn) as Value;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, maskSecretsIn(one)])) as Value;
}
