import { expect, it } from 'vitest';
import { foundNothing } from './upkeep-memory.js';

it('knows an erasure that had nothing to erase', () => {
  expect(foundNothing({ state: 'succeeded', removed: {} })).toBe(true);
  expect(foundNothing({ state: 'succeeded', removed: { 'memory.semantic.fact': 0n } })).toBe(true);
  expect(foundNothing({ state: 'succeeded', removed: { 'memory.semantic.fact': 1n } })).toBe(false);
  expect(foundNothing({ state: 'running', removed: {} })).toBe(false);
});
