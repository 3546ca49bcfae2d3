import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A new folder, which is removed after the test, or after the suite with `afterAll`. */
export function testFolder(end: (remove: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'etude-test-'));
  end(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
