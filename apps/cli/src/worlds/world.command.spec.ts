import { expect, it } from 'vitest';
import { moveOf } from './world.command.js';

it.each([
  ['observe_location', {}],
  ['observe_location 3', { radius: 3 }],
  ['  move_to  3 -4 ', { x: 3, y: -4 }],
  ['gather_resource berries', { resource: 'berries' }],
  ['interact_with_agent @guide-1', { name: '@guide-1' }],
  ['interact_with_agent @guide-1 talk where is 1 ore', { name: '@guide-1', action: 'talk', message: 'where is 1 ore' }],
])('reads the move %j', (line, args) => {
  expect(moveOf(line)).toEqual({ tool: line.trim().split(' ')[0], arguments: args });
});

it.each([
  ['fly', 'is not a move'],
  ['constructor', 'is not a move'],
  ['', 'is not a move'],
  ['move_to x 3', 'not a whole number'],
  ['move_to 1.5 3', 'not a whole number'],
  ['move_to 1 2 3', 'too many arguments'],
])('refuses the move %j', (line, message) => {
  expect(() => moveOf(line)).toThrow(message);
});
