import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { EtudeError } from '@etude/contracts/errors';
import { type Document, isMap, isNode, isSeq, LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';

function compiles({ regex, flags }: { regex: string; flags?: string | undefined }, context: z.RefinementCtx): void {
  try {
    void new RegExp(regex, flags);
  } catch (error) {
    context.addIssue({ code: 'custom', message: `is no regular expression: ${(error as Error).message}` });
  }
}

const Regex = z
  .strictObject({
    regex: z.string().min(1),
    flags: z
      .string()
      .regex(/^[imsuv]*$/, 'may hold i, m, s, u, v')
      .optional(),
  })
  .superRefine(compiles);
/** A text that must occur, or a regular expression. */
export const Pattern = z.union([z.string().min(1), Regex], { error: unionError('must be a text or {regex, flags}') });
export type Pattern = z.infer<typeof Pattern>;
const Patterns = z.union([Pattern.transform((pattern) => [pattern]), z.array(Pattern).min(1)], {
  error: unionError('must be a text, {regex, flags}, or a list of these'),
});

/** The reason of the branch that came nearest, where there is one; zod itself says only "Invalid input". */
function unionError(otherwise: string) {
  return (issue: { errors?: unknown }) => {
    const branches = (issue.errors as z.core.$ZodIssue[][] | undefined) ?? [];
    return branches.flat().find((inner) => inner.code === 'custom' || inner.code === 'unrecognized_keys')?.message ?? otherwise;
  };
}

const ToolCall = z.strictObject({ name: z.string().min(1), arguments: z.union([z.string(), z.record(z.string(), z.json())]).default({}) });

const answerFields = {
  reply: z.string().optional(),
  /** Read when the script is loaded; relative to the script. */
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
  stream_cut_after?: number | undefined;
}

function answersOnce(answer: AnswerShape, context: z.RefinementCtx): void {
  const said = (['reply', 'reply_file'] as const).filter((field) => answer[field] !== undefined);
  const ways = [said.length > 0 || answer.tool_calls !== undefined, answer.status !== undefined, answer.empty === true].filter(
    Boolean,
  ).length;
  if (said.length > 1) context.addIssue({ code: 'custom', path: ['reply_file'], message: 'give reply or reply_file, not both' });
  if (ways !== 1)
    context.addIssue({
      code: 'custom',
      message: `has ${ways === 0 ? 'no answer' : 'several answers'}: give reply (or reply_file) and/or tool_calls, or status, or empty: true`,
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
    /** What a failed attempt leaves in the conversation, for `after_failures`. */
    failure_mark: Pattern.optional(),
    embedding: z.strictObject({ dimension: z.number().int().min(1).max(8_192).default(256) }).prefault({}),
    rules: z.array(ScriptRule).default([]),
    default: ScriptAnswer.optional(),
  })
  .superRefine((script, context) => {
    script.rules.forEach((rule, i) => {
      if (rule.after_failures !== undefined && script.failure_mark === undefined) {
        context.addIssue({
          code: 'custom',
          path: ['rules', i, 'after_failures'],
          message: 'needs failure_mark at the top of the script: what a failed attempt leaves in the conversation',
        });
      }
    });
  });

/** As it is used. Times in ms. */
export type Script = z.output<typeof Script>;
/** As it is written. */
export type ScriptInput = z.input<typeof Script>;
export type ScriptRule = z.output<typeof ScriptRule>;
export type ScriptAnswer = z.output<typeof ScriptAnswer>;

/** Reads a script of YAML or JSON. @throws EtudeError INVALID_ARGUMENT naming file, line, rule and field of everything wrong */
export async function loadScript(path: string): Promise<Script> {
  const script = parseScript(await readText(path, 'script'), path);
  for (const answer of [...script.rules, script.default]) {
    if (answer?.reply_file) answer.reply = await readText(resolve(dirname(path), answer.reply_file), `reply_file of ${path}`);
  }
  return script;
}

/** @param source what to call it in messages */
export function parseScript(text: string, source: string): Script {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const broken = document.errors[0];
  if (broken) throw new EtudeError('INVALID_ARGUMENT', `${source}: ${broken.message.split('\n')[0]?.replace(/:$/, '')}`);
  const parsed = Script.safeParse(document.toJS());
  if (parsed.success) return parsed.data;
  const violations = parsed.error.issues
    .flatMap((issue) => violationsOf(issue))
    .map(({ path, message }) => ({
      field: path.join('.') || 'script',
      description: `${source} line ${lineOf(document, lines, path)}, ${place(document, path)}: ${message}`,
    }));
  throw new EtudeError('INVALID_ARGUMENT', violations.map((violation) => violation.description).join('\n'), { violations });
}

/** A script that was made in code rather than read. */
export function checkScript(script: unknown): Script {
  return parseScript(JSON.stringify(script), 'script');
}

/** True for a rule that answers with something broken: an error status, nothing, or half an answer. */
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

/** Line of the nearest thing on the path that is in the file. */
function lineOf(document: Document, lines: LineCounter, path: Path): number {
  for (let length = path.length; length >= 0; length--) {
    const offset = offsetOf(document, path.slice(0, length));
    if (offset !== undefined) return lines.linePos(offset).line;
  }
  return 1;
}

function offsetOf(document: Document, path: Path): number | undefined {
  const parent: unknown = path.length > 1 ? document.getIn(path.slice(0, -1), true) : document.contents;
  const last = path.at(-1);
  if (isMap(parent) && last !== undefined) {
    const key = parent.items.find((pair) => String(pair.key) === String(last))?.key;
    if (isNode(key)) return key.range?.[0];
  }
  const node: unknown = isSeq(parent) && typeof last === 'number' ? parent.items[last] : last === undefined ? parent : undefined;
  return isNode(node) ? node.range?.[0] : undefined;
}

/** "rule 3 (sum), field reply". */
function place(document: Document, path: Path): string {
  const [first, index, ...rest] = path;
  if (first !== 'rules' || typeof index !== 'number') return path.length > 0 ? `field ${path.join('.')}` : 'the script';
  const name: unknown = document.getIn(['rules', index, 'name']);
  const rule = `rule ${index + 1}${typeof name === 'string' ? ` (${name})` : ''}`;
  return rest.length > 0 ? `${rule}, field ${rest.join('.')}` : rule;
}
