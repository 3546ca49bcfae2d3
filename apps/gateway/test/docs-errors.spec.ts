import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERROR_KINDS } from '@etude/contracts/errors';
import { status } from '@grpc/grpc-js';
import { expect, it } from 'vitest';

const page = readFileSync(join(import.meta.dirname, '..', '..', '..', 'docs', 'reference', 'errors.md'), 'utf8');
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

it('documents every code as it is, with what to do', () => {
  const documented = rows.map(([code = '', grpc, retry, fault]) => [code.replaceAll('`', ''), { grpc, retry, fault }] as const);
  const real = Object.entries(ERROR_KINDS).map(
    ([code, kind]) => [code, { grpc: status[kind.grpc], retry: kind.retryable ? 'yes' : 'no', fault: kind.fault }] as const,
  );
  expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(real));
  expect(rows.filter((cells) => !cells[4])).toEqual([]);
});
