import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { hasHiddenTests } from '@etude/domain/skills/content-digest';
import type { StoredRecord } from '../../record-store.js';
import { idOf } from '../memory-search.js';
import { parseBody } from '../stored-body.js';

/** Kinds whose records may hold tests that only reviewers read. */
export const TESTED_KINDS = { episodic: ['episode'], semantic: [], procedural: ['skill'] } as const;

/** @throws EtudeError PERMISSION_DENIED where it holds tests that were made from a task's cases, some of which are hidden, or held-out ones */
export function refuseHiddenTests(record: StoredRecord): void {
  const { layer, kind, scope } = record;
  if (!(TESTED_KINDS[layer] as readonly string[]).includes(kind) || !holdsHiddenTests(record)) return;
  throw new EtudeError(
    'PERMISSION_DENIED',
    `An export of this would hold tests that only reviewers read: ${kind} ${idOf(record)} of "${scope.agent}" has some, held out or made from the cases of a task. Export with a key that has the role "reviewer", or only layers without such tests; "semantic" never has any.`,
  );
}

function holdsHiddenTests(record: StoredRecord): boolean {
  const { tests = [], heldOut = [], ...fields } = parseBody<Partial<Skill>>(record).value;
  if (heldOut.length > 0) return true;
  return tests.length > 0 && (record.kind === 'episode' || hasHiddenTests(fields));
}
