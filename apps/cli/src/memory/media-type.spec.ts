import { expect, it } from 'vitest';
import { mediaTypeOfPath } from './media-type.js';

it.each([
  ['docs/ship.md', 'text/markdown'],
  ['SHIP.TXT', 'text/plain'],
  ['a.htm', 'text/html'],
  ['a.xhtml', 'text/html'],
  ['a.b.pdf', 'application/pdf'],
  ['manual', ''],
  ['ship.md/manual', ''],
])('tells what %s is by its ending', (path, type) => {
  expect(mediaTypeOfPath(path)).toBe(type);
});
