import { z } from 'zod';
import type { Json } from './json.js';

/** A tool that code in a cell can call as a function. */
export const CellTool = z.strictObject({
  /** Such as "fs_read" or "notes/search". `tools.call` takes any name; a name that is an identifier is also a function. */
  name: z.string().min(1).max(200),
  /** Names of the parameters, in the order of positional arguments. */
  parameters: z.array(z.string().min(1).max(200)).max(100).readonly().default([]),
  description: z.string().max(10_000).default(''),
});
export type CellTool = z.infer<typeof CellTool>;
export const CellTools = z.array(CellTool).max(200);

export interface CellToolCall {
  /** Number of the call in its cell, from 1. It stays the same if a client that lost its connection follows the cell again. */
  readonly number: number;
  readonly tool: string;
  readonly arguments: Readonly<Record<string, Json>>;
}

export type CellToolAnswer = { readonly success: true; readonly result: Json } | { readonly success: false; readonly error: string };

/** Maximum size of an answer as JSON. */
export const TOOL_ANSWER_BYTES_MAX = 1024 * 1024;
/** How long a call waits for its answer. The wait doesn't count as wall time of the cell. */
export const TOOL_ANSWER_WAIT_MS = 15 * 60_000;

/** The limit is doubled: Python counts characters, but JavaScript counts characters outside the basic plane twice. */
const text = (charsMax: number) => z.string().max(2 * charsMax);

export const ScratchpadValue = z
  .strictObject({
    name: z.string().regex(/^[\p{XID_Start}_]\p{XID_Continue}{0,59}$/u, 'must be an identifier of at most 60 characters'),
    /** The value's `repr`, cut at 100 characters with "...". */
    shown: text(103).default(''),
    /** The pickled value in base64. Absent if the value can't be pickled, is too large, or is lost. */
    pickled: z.base64().max(90_000).optional(),
    /** The file of the workspace with the pickled value, if the value is too large for `pickled`. */
    file: z.string().optional(),
    /** Why the value is gone, for people and models. */
    lost: text(1_000).optional(),
  })
  .refine(({ name, file }) => file === undefined || file === `.scratchpad/${name}.pickle`, {
    path: ['file'],
    message: 'must be ".scratchpad/NAME.pickle", with the name of the value',
  });
export type ScratchpadValue = Readonly<z.infer<typeof ScratchpadValue>>;

const Notes = z.array(text(1_000)).max(200).default([]);
/** Characters of all pickled values of a state: 512 KiB in base64, and the padding of 200 values. */
const PICKLED_CHARS_MAX = 699_848;
const pickledChars = (values: readonly ScratchpadValue[]) => values.reduce((sum, { pickled = '' }) => sum + pickled.length, 0);

/** The values and notes that code in cells kept with `store`, `observe` and `fail`. */
export const Scratchpad = z.strictObject({
  values: z
    .array(ScratchpadValue)
    .max(200)
    .refine((values) => pickledChars(values) <= PICKLED_CHARS_MAX, 'must not have more than 512 KiB of pickled values')
    .default([]),
  observations: Notes,
  failedApproaches: Notes,
});
export interface Scratchpad {
  readonly values: readonly ScratchpadValue[];
  readonly observations: readonly string[];
  readonly failedApproaches: readonly string[];
}

export const EMPTY_SCRATCHPAD: Scratchpad = { values: [], observations: [], failedApproaches: [] };

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [`### ${title}\n${lines.map((line) => `- ${line}`).join('\n')}`];

/** The scratchpad as Markdown for a model; '' when it is empty. */
export function workingMemory({ values, observations, failedApproaches }: Scratchpad): string {
  const sections = [
    ...section(
      'Stored Values',
      values.map(({ name, shown, lost }) => `${name}: ${lost === undefined ? shown : `lost (${lost})`}`),
    ),
    ...section('Observations', observations),
    ...section('Failed Approaches (avoid these)', failedApproaches),
  ];
  return sections.length === 0 ? '' : ['## Working Memory', ...sections].join('\n\n');
}
