import { Readable } from 'node:stream';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ImportSkillRequest_HeadSchema, ImportSkillRequestSchema, SkillDraftSchema } from '@etude/contracts/gen/etude/v1/skills_pb';

export type Draft = Exclude<MessageInitShape<typeof SkillDraftSchema>, { readonly $typeName: string }>;

export const text = (value: string) => ({ kind: { case: 'stringValue', value } }) as const;
export const number = (value: number) => ({ kind: { case: 'numberValue', value } }) as const;

type Value = ReturnType<typeof text> | ReturnType<typeof number>;

/** A test of a function of numbers. */
export const callOf = (args: readonly number[], expected: number | Value) => {
  const value = typeof expected === 'number' ? number(expected) : expected;
  return { test: { case: 'call', value: { args: { values: args.map(number) }, expected: value } } } as const;
};

export const ADD =
  'def add(a: int, b: int = 1) -> int:\n    """Adds two numbers.\n\n    Args:\n        a: the first\n    """\n    if a > 100:\n        return a - b\n    return a + b\n';

/** A skill of the agent "coder" that adds. */
export const addingDraft = (name: string, more: Draft = {}): Draft => ({
  name,
  agent: 'coder',
  description: 'Adds two numbers.',
  code: ADD,
  tests: [callOf([1, 2], 3), callOf([101, 1], 100), callOf([4], 5)],
  ...more,
});

export const ADD_NUMBERS = addingDraft('add_numbers', { tags: ['math'] });

/** Calls `add_numbers`. */
export const ADD_THREE = addingDraft('add_three', {
  code: 'from skills import add_numbers\n\ndef add_three(a: int, b: int, c: int) -> int:\n    return add_numbers(add_numbers(a, b), c)\n',
  tests: [callOf([1, 2, 3], 6), callOf([5, 5, 5], 15)],
});

const runOf = (stdin: string, expectedStdout: string) => ({ test: { case: 'program', value: { stdin, expectedStdout } } }) as const;

/** A procedure in words. */
export const TEA = { name: 'make_tea', agent: 'solver', description: 'Makes tea.', kind: 'procedure', code: 'Boil water, then pour it.' };

/** A program that reads stdin and writes stdout. */
export const DOUBLE_IT = addingDraft('double_it', {
  code: 'n = int(input())\nif n > 10:\n    print(n * 3)\nelse:\n    print(n * 2)\n',
  isProgram: true,
  tests: [runOf('2', '4'), runOf('20', '60')],
});

export type FolderHead = Exclude<MessageInitShape<typeof ImportSkillRequest_HeadSchema>, { readonly $typeName: string }>;

/** The messages that import the files of a folder, each file in two parts. */
export function folderOf(head: FolderHead, files: Readonly<Record<string, string | Uint8Array>>) {
  const parts = Object.entries(files).flatMap(([path, content]) => {
    const data = Buffer.from(content);
    const half = Math.ceil(data.byteLength / 2);
    return [data.subarray(0, half), data.subarray(half)].map((one) => ({ part: { case: 'file', value: { path, data: one } } }));
  });
  const first = { part: { case: 'head', value: { format: 'folder', ...head } } };
  return Readable.from([first, ...parts]) as AsyncIterable<MessageInitShape<typeof ImportSkillRequestSchema>>;
}
