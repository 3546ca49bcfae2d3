import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
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

const ToolCall = z.strictObject({ name: z.string().min(1), arguments: z.union([z.string(), z.record(z.string(), z.json())]).default({}) });

const answerFields = {
  reply: z.string().optional(),
  /** A file that is read when the script is loaded; its path is relative to the script. */
  reply_file: z.string().min(1).optional(),
  tool_calls: z.array(ToolCall).min(1).optional(),
  finish_reason: z.enum(['stop', 'length', 'tool_calls']).optional(),
  empty: z.literal(true).optional(),
  status: z.number().int().min(300).max(599).optional(),
  headers: z.record(z.string().regex(/^[A-Za-z0-9-]+$/, 'must be a header name'), z.coerce.string().regex(/^[^\r\n]*$/)).optional(),
  error: z.string().optional(),
  delay_ms: z.number().int().min(0).max(86_400_000).default(0),
  chunk_delay_ms: z.number().int().min(0).max(86_400_000).default(0),
  stream_cut_after: z.number().int().min(0).optional(),
  usage: z.strictObject({ input_tokens: z.number().int().min(0), output_tokens: z.number().int().min(0) }).optional(),
};

const conditionFields = {
  name: z.string().min(1).optional(),
  match: Patterns.optional(),
  match_all: Patterns.optional(),
  unless: Patterns.optional(),
  system: Patterns.optional(),
  tool_result: Patterns.optional(),
  model: Patterns.optional(),
  after_failures: z.number().int().min(0).optional(),
  attempt: z.number().int().min(1).optional(),
  key: z.string().min(1).optional(),
  times: z.number().int().min(1).optional(),
};

interface AnswerShape {
  reply?: string | undefined;
  reply_file?: string | undefined;
  tool_calls?: unknown;
  status?: number | undefined;
  empty?: true | undefined;
}

function answersOnce({ reply, reply_file, tool_calls, status, empty }: AnswerShape, context: z.RefinementCtx): void {
  const says = reply !== undefined || reply_file !== undefined || tool_calls !== undefined;
  const ways = [says, status !== undefined, empty === true].filter(Boolean).length;
  const what = ways === 0 ? 'no answer' : 'several answers';
  if (ways !== 1 || (reply !== undefined && reply_file !== undefined))
    context.addIssue({
      code: 'custom',
      message: `has ${what}: give reply or reply_file, and/or tool_calls; or status; or empty: true`,
    });
}

export const ScriptAnswer = z.strictObject(answerFields).superRefine(answersOnce);
export const ScriptRule = z.strictObject({ ...conditionFields, ...answerFields }).superRefine(answersOnce);

export const Script = z
  .strictObject({
    /** The model's name is `scripted/<name>`. */
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be letters, digits, ".", "_", "-"')
      .default('script'),
    /** The pattern that marks a failed attempt in the conversation, for `after_failures`. */
    failure_mark: Pattern.optional(),
    rules: z.array(ScriptRule).default([]),
    default: ScriptAnswer.optional(),
  })
  .refine(({ rules, failure_mark }) => failure_mark !== undefined || rules.every((rule) => rule.after_failures === undefined), {
    path: ['failure_mark'],
    message: 'is needed by after_failures: what a failed attempt leaves in the conversation',
  });

/** A script as it is used. Times are in ms. */
export type Script = z.output<typeof Script>;
/** A script as its author writes it. */
export type ScriptInput = z.input<typeof Script>;
export type ScriptRule = z.output<typeof ScriptRule>;
export type ScriptAnswer = z.output<typeof ScriptAnswer>;

/** Reads a script of YAML or JSON. @throws EtudeError INVALID_ARGUMENT naming file, line, rule and field of every mistake */
export async function loadScript(path: string): Promise<Script> {
  const script = parseScript(await readText(path, 'script'), path);
  for (const answer of [...script.rules, script.default]) {
    if (answer?.reply_file) answer.reply = await readText(resolve(dirname(path), answer.reply_file), `reply_file of ${path}`);
  }
  return script;
}

/** @param source names the script in messages */
export function parseScript(text: string, source: string): Script {
  const document = parseDocument(text);
  const broken = document.errors[0];
  if (broken) throw new EtudeError('INVALID_ARGUMENT', `${source}: ${broken.message.split('\n')[0]?.replace(/:$/, '')}`);
  const given: unknown = document.toJS();
  const parsed = Script.safeParse(given);
  if (parsed.success) return parsed.data;
  const violations = parsed.error.issues
    .flatMap((issue) => violationsOf(issue))
    .map(({ path, message }) => ({
      field: path.join('.') || 'script',
      description: `${source}, ${placeOf(path, given)}: ${message}`,
    }));
  throw new EtudeError('INVALID_ARGUMENT', violations.map((violation) => violation.description).join('\n'), { violations });
}

/** Checks a script that was made in code rather than read from a file. */
export function checkScript(script: unknown): Script {
  return parseScript(JSON.stringify(script), 'script');
}

/** Whether an answer is a fault: an error status, no answer, or half an answer. */
export const isFault = (answer: ScriptAnswer) =>
  answer.status !== undefined || answer.empty === true || answer.stream_cut_after !== undefined;

async function readText(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new EtudeError('INVALID_ARGUMENT', `can't read ${what} ${path}: ${(error as Error).message}`, {}, { cause: error });
  }
}

type Path = PropertyKey[];

function violationsOf(issue: z.core.$ZodIssue): Array<{ path: Path; message: string }> {
  if (issue.code !== 'unrecognized_keys') return [{ path: issue.path, message: issue.message }];
  return issue.keys.map((key) => ({
    path: [...issue.path, key],
    message: 'is no field of it; see docs/scripted-model.md for those there are',
  }));
}

/** Names a place in a script, such as "rule 3 (sum), field reply". */
function placeOf(path: Path, given: unknown): string {
  const [first, index, ...rest] = path;
  if (first !== 'rules' || typeof index !== 'number') return path.length > 0 ? `field ${path.join('.')}` : 'the script';
  const name = (given as { rules: ReadonlyArray<{ name?: unknown } | null> }).rules[index]?.name;
  const rule = `rule ${index + 1}${typeof name === 'string' ? ` (${name})` : ''}`;
  return rest.length > 0 ? `${rule}, field ${rest.join('.')}` : rule;
}
