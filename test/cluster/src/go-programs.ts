import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.js';
import { cacheDir, type Note } from './settings.js';

/** Programs that come as Go modules: the module, and the package in it. */
const PROGRAMS = {
  helm: ['helm.sh/helm/v3@v3.22.0', './cmd/helm'],
  coredns: ['github.com/coredns/coredns@v1.15.0', '.'],
  kubeconform: ['github.com/yannh/kubeconform@v0.7.0', './cmd/kubeconform'],
  'keda-operator': ['github.com/kedacore/keda/v2@v2.21.0', './cmd/operator'],
  'prometheus-adapter': ['sigs.k8s.io/prometheus-adapter@v0.12.0', './cmd/adapter'],
  'keda-adapter': ['github.com/kedacore/keda/v2@v2.21.0', './cmd/adapter'],
} as const;

export type GoProgram = keyof typeof PROGRAMS;

/** Folder of a module's sources, such as "k8s.io/kubernetes@v1.34.2". Downloads it once. */
export async function goModule(module: string): Promise<string> {
  return (JSON.parse(await run('go', ['mod', 'download', '-json', module])) as { Dir: string }).Dir;
}

export const sourcesOf = (name: GoProgram): Promise<string> => goModule(PROGRAMS[name][0]);

/**
 * Builds a program once per version, in the folder of its sources, because `go install` takes no module with a `replace`.
 *
 * @returns its path @throws Error with the compiler's message
 */
export async function goProgram(name: GoProgram, note: Note): Promise<string> {
  const [module, source] = PROGRAMS[name];
  const dir = join(cacheDir(), 'go', module.slice(module.lastIndexOf('@') + 1));
  const path = join(dir, name);
  if (existsSync(path)) return path;
  note(`building ${name} of ${module}: once, minutes on two cores`);
  const next = `${path}.${process.pid}`;
  await mkdir(dir, { recursive: true });
  try {
    await run('go', ['build', '-mod=readonly', '-trimpath', '-ldflags=-s -w', '-o', next, source], { cwd: await goModule(module) });
    await rename(next, path);
  } finally {
    await rm(next, { force: true });
  }
  return path;
}
