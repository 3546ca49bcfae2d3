import { expect, it } from 'vitest';
import { servicesTwice } from './images.js';

it('builds an image of the services with the same digest from the same sources', async () => {
  const [first, second] = await servicesTwice(() => undefined);
  expect(first).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(second).toBe(first);
}, 900_000);
