import { create } from '@bufbuild/protobuf';
import { LiftSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { expect, it } from 'vitest';
import { liftText } from './lift.js';

it('shows effects with their intervals, and leaves out layers without shows', () => {
  const sums = { shown: 90n, shownRight: 60n, withheld: 10n, withheldRight: 7n, success: { estimate: -0.0333, low: -0.28, high: 0.27 } };
  const item = {
    ...sums,
    layer: 'semantic',
    kind: 'fact',
    id: 'f1',
    tokens: { estimate: 120.4, low: -3, high: 250 },
    archiveReason: 'harmful',
  };
  const lift = create(LiftSchema, { memory: sums, layers: [{ layer: 'semantic', ...sums }, { layer: 'episodic' }], items: [item] });
  const lines = liftText(lift).split('\n');
  expect(lines).toHaveLength(4);
  expect(lines[1]).toMatch(/^memory +60\/90 +7\/10 +-0\.03 \(-0\.28 to \+0\.27\) +-$/);
  expect(lines[3]).toMatch(/^fact f1 .*\+120 \(-3 to \+250\) +archived$/);
});

it('is empty before anything was recalled', () => {
  expect(liftText(create(LiftSchema, { memory: {} }))).toBe('');
});
