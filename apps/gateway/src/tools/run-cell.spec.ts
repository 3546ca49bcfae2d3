import { EtudeError } from '@etude/contracts/errors';
import { expect, it, vi } from 'vitest';
import type { CallContext } from '../calls/caller.js';
import type { SandboxRouter } from '../controllers/sandbox-router.js';
import { runCell } from './run-cell.js';

const ID = 's0000000000000000000000001';

/** A cell whose caller leaves while it runs, at a controller that answers the wish to cancel it like this. */
function leftAlone(cancelled: Promise<void>) {
  const caller = new AbortController();
  const client = {
    // oxlint-disable-next-line require-yield -- it ends before its first event
    async *execute() {
      caller.abort(new EtudeError('CANCELLED', 'The caller ended the call.'));
      throw caller.signal.reason;
    },
    cancelExecution: vi.fn(() => cancelled),
  };
  const router = {
    follow: (_id: string, _context: CallContext, open: (to: typeof client) => AsyncIterable<never>) => open(client),
    ask: async (_id: string, _context: CallContext, work: (to: typeof client) => Promise<void>) => work(client),
  };
  const log = vi.fn();
  const context: CallContext = { tenant: 'acme', name: 'coder', roles: [], signal: caller.signal, deadlineMs: Infinity };
  const deps = { router: router as unknown as SandboxRouter, log };
  const ended = runCell(deps, ID, { executionId: 'cell-1', code: 'while True: pass' }, context);
  return { ended, log, cancelExecution: client.cancelExecution };
}

it('stops a cell whose caller is gone', async () => {
  const { ended, log, cancelExecution } = leftAlone(Promise.resolve());
  await expect(ended).rejects.toMatchObject({ code: 'CANCELLED' });
  expect(cancelExecution).toHaveBeenCalledExactlyOnceWith({ name: `sandboxes/${ID}`, executionId: 'cell-1' }, undefined);
  expect(log).not.toHaveBeenCalled();
});

it('says in the log why a cell could not be stopped', async () => {
  const away = new EtudeError('SANDBOX_UNAVAILABLE', 'The controller is away.');
  const { ended, log } = leftAlone(Promise.reject(away));
  await expect(ended).rejects.toMatchObject({ code: 'CANCELLED' });
  expect(log).toHaveBeenCalledExactlyOnceWith(expect.stringContaining('could not be stopped'), expect.objectContaining({ err: away }));
});
