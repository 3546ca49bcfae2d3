import { EtudeError } from '@etude/contracts/errors';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isMap, isNode, isSeq, LineCounter, parseDocument } from 'yaml';
import type { Document } from 'yaml';
import type { z } from 'zod';
import type { ScriptAnswer } from './script-schema.js';
import { Script } from './script-schema.js';

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
