import { isUtf8 } from 'node:buffer';
import { EtudeError } from '@etude/contracts/errors';
import { z } from 'zod';
import type { WorkSandbox } from '../ports/sandboxes.js';
import { defineTool, type ToolDefinition } from './tool-definition.js';

export const FILE_BYTES_MAX = 1_048_576;
const LINES_STANDARD = 400;
const LISTED_MAX = 300;
const MATCHES_MAX = 60;

const Path = z
  .string()
  .min(1)
  .max(512)
  .describe('Relative to the working directory, such as "src/main.py".')
  .transform((path) => path.replace(/^\.\//, ''));

export const FILE_TOOLS: ReadonlySet<string> = new Set(['fs_list', 'fs_read', 'fs_search', 'fs_write']);

export type SandboxNow = (signal: AbortSignal) => Promise<WorkSandbox>;

export function workspaceTools(sandbox: SandboxNow): readonly ToolDefinition[] {
  return [listTool(sandbox), readTool(sandbox), searchTool(sandbox), writeTool(sandbox)];
}

const listTool = (sandbox: SandboxNow): ToolDefinition =>
  defineTool({
    name: 'fs_list',
    title: 'List files',
    description: 'Lists the files of the working directory with their sizes in bytes.',
    input: z.strictObject({ folder: z.string().max(512).default('').describe('Only files below this folder; default all.') }),
    output: z.strictObject({ files: z.array(z.strictObject({ path: z.string(), bytes: z.number() })), more: z.number().optional() }),
    readOnly: true,
    idempotent: true,
    async run({ folder }, _context, signal) {
      const below = folder.replace(/^\.\/?/, '').replace(/\/*$/, '');
      const all = await (await sandbox(signal)).list(signal);
      const files = all.filter(({ path }) => below === '' || path.startsWith(`${below}/`));
      const shown = files.slice(0, LISTED_MAX).map(({ path, sizeBytes: bytes }) => ({ path, bytes }));
      return { success: true, result: { files: shown, ...(files.length > LISTED_MAX ? { more: files.length - LISTED_MAX } : {}) } };
    },
  });

const readTool = (sandbox: SandboxNow): ToolDefinition =>
  defineTool({
    name: 'fs_read',
    title: 'Read a file',
    description: `Reads lines of a text file; by default the first ${LINES_STANDARD}.`,
    input: z.strictObject({
      path: Path,
      from_line: z.number().int().min(1).default(1),
      to_line: z.number().int().min(1).optional().describe('The last line, inclusive.'),
    }),
    output: z.strictObject({ content: z.string().optional(), lines: z.number().describe('Lines of the whole file.').optional() }),
    readOnly: true,
    idempotent: true,
    async run({ path, from_line: from, to_line: to = from + LINES_STANDARD - 1 }, _context, signal) {
      const bytes = await (await sandbox(signal)).read(path, FILE_BYTES_MAX, signal);
      if (bytes === null) return { success: false, error: `There is no file "${path}". fs_list names the files.` };
      if (bytes.includes(0)) return { success: false, error: `"${path}" is no text file. Read it in code.` };
      const lines = new TextDecoder().decode(bytes).split('\n');
      if (lines.at(-1) === '') lines.pop();
      return { success: true, result: { content: lines.slice(from - 1, to).join('\n'), lines: lines.length } };
    },
  });

const searchTool = (sandbox: SandboxNow): ToolDefinition =>
  defineTool({
    name: 'fs_search',
    title: 'Search files',
    description: 'Finds lines that contain a text, and files whose names contain it.',
    input: z.strictObject({ text: z.string().min(1).max(400).describe('Taken literally. Case counts.') }),
    output: z.strictObject({
      matches: z.array(z.strictObject({ path: z.string(), line: z.number(), text: z.string() })),
      names: z.array(z.string()),
      more: z.number().optional(),
    }),
    readOnly: true,
    idempotent: true,
    async run({ text }, _context, signal) {
      const there = await sandbox(signal);
      const [{ lines, total }, all] = await Promise.all([there.search(text, MATCHES_MAX, signal), there.list(signal)]);
      const names = all.map(({ path }) => path).filter((path) => path.includes(text));
      const more = total > lines.length ? { more: total - lines.length } : {};
      return { success: true, result: { matches: [...lines], names: names.slice(0, MATCHES_MAX), ...more } };
    },
  });

const writeTool = (sandbox: SandboxNow): ToolDefinition =>
  defineTool({
    name: 'fs_write',
    title: 'Write a file',
    description: 'Creates a file or replaces its content. With "old", replaces this one place of an existing file.',
    input: z.strictObject({
      path: Path,
      content: z.string().max(FILE_BYTES_MAX).describe('The whole content, or the new text of the place.'),
      old: z.string().min(1).optional().describe('Text that occurs exactly once in the file.'),
    }),
    output: z.strictObject({ bytes: z.number().optional() }),
    readOnly: false,
    idempotent: true,
    run: async ({ path, content, old }, _context, signal) => {
      const there = await sandbox(signal);
      const text = old === undefined ? content : replacedIn(path, await there.read(path, FILE_BYTES_MAX + 1, signal), old, content);
      const bytes = new TextEncoder().encode(text);
      await there.write(path, bytes, signal);
      return { success: true, result: { bytes: bytes.byteLength } };
    },
  });

/** The text of a file with `old` replaced by `content`. @throws EtudeError FAILED_PRECONDITION if `old` doesn't occur exactly once */
function replacedIn(path: string, bytes: Uint8Array | null, old: string, content: string): string {
  if (bytes === null) throw refused(`There is no file "${path}". Leave "old" out to create it.`);
  if (bytes.length > FILE_BYTES_MAX || !isUtf8(bytes))
    throw refused(`"${path}" is larger than 1 MiB, or isn't UTF-8 text. Change it with code.`);
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  const places = text.split(old).length - 1;
  // The edit was made already: the new text contains "old", and "old" occurs nowhere else.
  if (places === 1 && content.includes(old) && text.includes(content)) return text;
  const hint = places === 0 && content !== '' && text.includes(content) ? ' The new text is there already.' : '';
  if (places !== 1) throw refused(`"old" occurs ${places} times in "${path}", not once.${hint}`);
  return text.replace(old, () => content);
}

const refused = (message: string) => new EtudeError('FAILED_PRECONDITION', message);
