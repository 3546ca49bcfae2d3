import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.js';
import { cacheDir, type Note } from './settings.js';

/** Programs that come as Go modules. */
const MODULES = {
  helm: 'helm.sh/helm/v3/cmd/helm@v3.22.0',
  coredns: 'github.com/coredns/coredns@v1.15.0',
} as const;

/** Builds a program, once for its version. @returns its path @throws Error with the compiler's message */
export async function goProgram(name: keyof typeof MODULES, note: Note): Promise<string> {
  const module = MODULES[name];
  const dir = join(cacheDir(), 'go', module.slice(module.lastIndexOf('@') + 1));
  const path = join(dir, name);
  if (existsSync(path)) return path;
  note(`building ${module}: once, two to three minutes on two cores`);
  const next = `${dir}.${process.pid}`;
  await mkdir(next, { recursive: true });
  try {
    await run('go', ['install', '-trimpath', module], { env: { GOBIN: next, GOFLAGS: '-mod=mod' } });
    await mkdir(dir, { recursive: true });
    await rename(join(next, name), path);
  } finally {
    await rm(next, { recursive: true, force: true });
  }
  return path;
}
