import { expect, it } from 'vitest';
import { checkedTool } from './outside-tool.js';

const level = (at: number) => ({ [at % 2 === 0 ? 'allOf' : 'anyOf']: [{ $ref: `#/$defs/l${at + 1}` }, { $ref: `#/$defs/l${at + 1}` }] });

/** Each level names the next one twice. */
const doubling = (levels: number) => {
  const names = Array.from({ length: levels }, (_, at) => [`l${at}`, level(at)] as const);
  const $defs = { ...Object.fromEntries(names), [`l${levels}`]: { type: 'string' } };
  return { type: 'object', properties: { x: { $ref: '#/$defs/l0' } }, $defs };
};
const problem = (inputSchema: object, args: unknown) => checkedTool('s', { name: 't', inputSchema }).problemOf(args);

it('checks arguments by references', () => {
  expect(problem(doubling(3), { x: 1 })).toContain('string');
  expect(problem(doubling(3), { x: 'a' })).toBeNull();
});

it.each([
  ['double at each level', doubling(45)],
  ['lead to themselves', { type: 'object', properties: { x: { anyOf: [{ $ref: '#' }, { $ref: '#' }, { type: 'string' }] } } }],
])('leaves the check to the server where references %s', (_what, schema) => {
  expect(problem(schema, { x: 1 })).toBeNull();
  expect(checkedTool('s', { name: 't', inputSchema: schema }).inputSchema).toEqual(schema);
});
