import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const app = join(import.meta.dirname, '..');
const compiler = join(app, '..', '..', 'node_modules', '.bin', 'tsc');

/** Compiles this app and what it uses, where that changed; answers its main module. */
export async function builtMain(): Promise<string> {
  await promisify(execFile)(compiler, ['-b', app]);
  return join(app, 'dist', 'main.js');
}
