import { expect, it } from 'vitest';
import { EXIT } from '../errors.js';
import { qdrantPlace } from './places.js';

it('wants a server or a program where memory shall be in Qdrant', () => {
  expect(() => qdrantPlace({ PATH: '/nowhere' }, 1)).toThrow(expect.objectContaining({ exit: EXIT.unavailable }));
  expect(qdrantPlace({ PATH: '/nowhere', ETUDE_QDRANT_URL: 'http://q:6333' }, 1)).toEqual({ url: 'http://q:6333', binary: null });
});
