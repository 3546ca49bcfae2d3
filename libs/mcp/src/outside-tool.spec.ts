import { expect, it } from 'vitest';
import { checkedTool } from './outside-tool.js';

it.each([
  ['checks arguments by the schema', { type: 'string' }, expect.stringContaining('string')],
  ['leaves the check to the server where the schema has references', { $ref: '#/$defs/text' }, null],
])('%s', (_what, x, problem: unknown) => {
  const inputSchema = { type: 'object', properties: { x }, $defs: { text: { type: 'string' } } };
  const tool = checkedTool('s', { name: 't', inputSchema });
  expect(tool.inputSchema).toEqual(inputSchema);
  expect(tool.problemOf({ x: 1 })).toEqual(problem);
});
