import { createHash } from 'node:crypto';
import { z } from 'zod';
import { isFault, type Pattern, type Script, type ScriptAnswer, type ScriptRule } from './script.js';

const Part = z.looseObject({ text: z.string().optional() });
const Message = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.union([z.string(), Part])), z.null()]).optional(),
});

export const ChatBody = z.looseObject({
  messages: z.array(Message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
});
export type ChatBody = z.infer<typeof ChatBody>;

export interface Conversation {
  readonly messages: ReadonlyArray<{ readonly role: string; readonly text: string }>;
  /** Digest of the request's body, without the fields for streaming. */
  readonly digest: string;
}

export function conversationOf(request: ChatBody): Conversation {
  const body = { ...request, stream: undefined, stream_options: undefined };
  return {
    messages: body.messages.map(({ role, content }) => ({ role, text: textOf(content) })),
    digest: createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 32),
  };
}

function textOf(content: ChatBody['messages'][number]['content']): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => (typeof part === 'string' ? part : (part.text ?? ''))).join('');
}

export interface Match {
  /** The rule's name, or `rule <n>` if it has no name, or `default`. */
  readonly rule: string;
  readonly answer: ScriptAnswer;
  /** Captures of the rule's regular expressions, by group number and by group name. */
  readonly captures: ReadonlyMap<string, string>;
}

/**
 * Finds the first rule that fits a conversation.
 *
 * A repeated request body counts as the same attempt, so a request that is repeated after a crash gets the same answer. A rule that answers
 * with an error or with nothing counts each repetition, so that a retry can succeed.
 */
export class ScriptMatcher {
  readonly #attempts = new Map<string, Map<string, number>>();
  readonly #faults = new Map<string, number>();

  constructor(private readonly script: Script) {}

  match(conversation: Conversation): Match | null {
    for (const [i, rule] of this.script.rules.entries()) {
      const captures = conditionsHold(rule, conversation);
      if (captures && this.#countHolds(rule, i, captures, conversation.digest))
        return { rule: rule.name ?? `rule ${i + 1}`, answer: rule, captures };
    }
    const answer = this.script.default;
    return answer ? { rule: 'default', answer, captures: new Map() } : null;
  }

  #countHolds(rule: ScriptRule, index: number, captures: ReadonlyMap<string, string>, digest: string): boolean {
    if (rule.attempt === undefined && rule.times === undefined) return true;
    const { match, match_all, unless, system, key = '' } = rule;
    const attempt = this.#attemptOf(JSON.stringify([match, match_all, unless, system, filled(key, captures)]), digest);
    if (rule.attempt !== undefined && attempt !== rule.attempt) return false;
    if (rule.times === undefined) return true;
    return isFault(rule) ? this.#faultLeft(`${index}\n${digest}`, rule.times) : rule.attempt !== undefined || attempt <= rule.times;
  }

  /** The number of this body, counted from 1, among the distinct bodies that fulfilled the same conditions. */
  #attemptOf(key: string, digest: string): number {
    const seen = this.#attempts.get(key) ?? new Map<string, number>();
    this.#attempts.set(key, seen);
    const known = seen.get(digest);
    if (known !== undefined) return known;
    const attempt = seen.size;
    seen.set(digest, attempt + 1);
    return attempt + 1;
  }

  #faultLeft(key: string, times: number): boolean {
    const met = this.#faults.get(key) ?? 0;
    if (met >= times) return false;
    this.#faults.set(key, met + 1);
    return true;
  }
}

/** Replaces `{{1}}` and `{{name}}` by captures. Other double braces are kept, because Python uses them too. */
export function filled(template: string, captures: ReadonlyMap<string, string>): string {
  if (captures.size === 0) return template;
  return template.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => captures.get(name) ?? whole);
}

function conditionsHold(rule: ScriptRule, { messages }: Conversation): Map<string, string> | null {
  const captures = new Map<string, string>();
  const user = messages.findLast((message) => message.role === 'user')?.text ?? '';
  const system = messages.filter((message) => message.role === 'system' || message.role === 'developer').map((message) => message.text);
  const all = messages.map((message) => message.text);
  const holds =
    everyFound(rule.match, [user], captures) &&
    everyFound(rule.match_all, all, captures) &&
    everyFound(rule.system, system, captures) &&
    !(rule.unless ?? []).some((pattern) => all.some((text) => found(pattern, text, new Map())));
  return holds ? captures : null;
}

const everyFound = (patterns: readonly Pattern[] | undefined, texts: readonly string[], captures: Map<string, string>) =>
  (patterns ?? []).every((pattern) => texts.some((text) => found(pattern, text, captures)));

/** Whether a pattern occurs in the text. Adds its named captures, and for the first regular expression also the numbered captures. */
function found(pattern: Pattern, text: string, captures: Map<string, string>): boolean {
  if (typeof pattern === 'string') return text.includes(pattern);
  const match = new RegExp(pattern.regex, pattern.flags).exec(text);
  if (!match) return false;
  if (!captures.has('0')) match.forEach((group, i) => captures.set(String(i), group ?? ''));
  for (const [name, group] of Object.entries(match.groups ?? {})) captures.set(name, group ?? '');
  return true;
}
