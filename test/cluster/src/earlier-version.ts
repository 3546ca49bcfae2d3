import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { run } from './command.js';
import { root } from './settings.js';

/**
 * The commit of the version before this one. Tests upgrade from it and roll back to it. At a release, set this to the commit of the release
 * before, and renew the versions in docs/upgrading.md.
 */
export const EARLIER_VERSION = '962b7b1ae0168d06f69d70b3a65fbec33313029c';

/** Whether the checkout has the commit EARLIER_VERSION. A shallow clone lacks the commit. */
export function hasEarlierVersion(): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${EARLIER_VERSION}^{commit}`], { cwd: root, stdio: 'ignore' });
    return true;
  } catch {
    return false; // also without git
  }
}

export async function writeEarlierVersion(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await run('sh', ['-c', 'git archive "$1" | tar -x -C "$2"', 'sh', EARLIER_VERSION, dir], { cwd: root });
}
