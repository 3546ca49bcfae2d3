import { readFile } from 'node:fs/promises';
import { EtudeError } from '@etude/contracts/errors';
import { parseDocument } from 'yaml';
import { z } from 'zod';

function compiles({ regex, flags }: { regex: string; flags?: string | undefined }): boolean {
  try {
    return new RegExp(regex, flags) instanceof RegExp;
  } catch {
    return false;
  }
}

const Regex = z
  .strictObject({
    regex: z.string().min(1),
    flags: z
      .string()
      .regex(/^[imsuv]*$/)
      .optional(),
  })
  .refine(compiles);
export const Pattern = z.union([z.string().min(1), Regex], 'must be a text, or {regex, flags} that make a regular expression');
export type Pattern = z.infer<typeof Pattern>;
const Patterns = z.union(
  [Pattern.transform((pattern) => [pattern]), z.array(Pattern).min(1)],
  'must be a text, {regex, flags} that make a regular expression, or a list of these',
);

const answerFields = {
  reply: z.string().optional(),
  tool_calls: z
    .array(z.strictObject({ name: z.string().min(1), arguments: z.record(z.string(), z.unknown()).default({}) }))
    .min(1)
    .optional(),
  finish_reason: z.enum(['stop', 'length']).default('stop'),
  empty: z.literal(true).optional(),
  status: z.number().int().min(300).max(599).optional(),
  headers: z.record(z.string().regex(/^[A-Za-z0-9-]+$/, 'must be a header name'), z.coerce.string().regex(/^[^\r\n]*$/)).optional(),
  error: z.string().optional(),
  delay_ms: z.number().int().min(0).max(86_400_000).default(0),
  usage: z.strictObject({ input_tokens: z.number().int().min(0), output_tokens: z.number().int().min(0) }).optional(),
};

const conditionFields = {
  name: z.string().min(1).optional(),
  match: Patterns.optional(),
  match_all: Patterns.optional(),
  unless: Patterns.optional(),
  system: Patterns.optional(),
  attempt: z.number().int().min(1).optional(),
  key: z.string().min(1).optional(),
  times: z.number().int().min(1).optional(),
};

const Answer = z.strictObject(answerFields);
const answersOnce = ({ reply, tool_calls: calls, status, empty }: z.output<typeof Answer>) =>
  [reply !== undefined || calls !== undefined, status !== undefined, empty === true].filter(Boolean).length === 1;
const ONE_ANSWER = 'needs exactly one answer: reply and tool_calls, status, or empty: true';

export const ScriptAnswer = Answer.refine(answersOnce, ONE_ANSWER);
export const ScriptRule = z.strictObject({ ...conditionFields, ...answerFields }).refine(answersOnce, ONE_ANSWER);

export const Script = z.strictObject({
  /** The model's name is `scripted/<name>`. */
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be letters, digits, ".", "_", "-"')
    .default('script'),
  rules: z.array(ScriptRule).default([]),
  default: ScriptAnswer.optional(),
});

/** A parsed script. Times are in ms. */
export type Script = z.output<typeof Script>;
export type ScriptInput = z.input<typeof Script>;
export type ScriptRule = z.output<typeof ScriptRule>;
export type ScriptAnswer = z.output<typeof ScriptAnswer>;

/** Reads a script in YAML or JSON. @throws EtudeError INVALID_ARGUMENT that names the file and every wrong field */
export async function loadScript(path: string): Promise<Script> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new EtudeError('INVALID_ARGUMENT', `The script ${path} can't be read: ${error.message}`, {}, { cause: error });
  });
  return parseScript(text, path);
}

/** @param source name of the script for messages */
export function parseScript(text: string, source: string): Script {
  const document = parseDocument(text);
  const broken = document.errors[0];
  if (broken) throw new EtudeError('INVALID_ARGUMENT', `${source}: ${broken.message.split('\n')[0]?.replace(/:$/, '')}`);
  const parsed = Script.safeParse(document.toJS());
  if (parsed.success) return parsed.data;
  throw new EtudeError('INVALID_ARGUMENT', `${source} is wrong; see docs/scripted-model.md:\n${z.prettifyError(parsed.error)}`);
}

export function checkScript(script: unknown): Script {
  return parseScript(JSON.stringify(script), 'script');
}

/** Whether an answer plays a faulty server: it has an error status or is empty. */
export const isFault = (answer: ScriptAnswer) => answer.status !== undefined || answer.empty === true;
