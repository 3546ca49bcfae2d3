import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.js';
import { writePauseImage } from './pause-image.js';
import { cacheDir, kubenodeSources, type Note } from './settings.js';

const PROGRAMS = ['kube-apiserver', 'kube-controller-manager', 'kube-proxy', 'kube-scheduler', 'kubectl', 'kubelet'];

/** The release that go.mod pins, such as 1.34.2. The linker writes the release into the programs. */
export async function release(): Promise<string> {
  const found = /k8s\.io\/kubernetes v(\S+)/.exec(await readFile(join(kubenodeSources, 'go.mod'), 'utf8'))?.[1];
  if (!found) throw new Error(`${kubenodeSources}/go.mod pins no k8s.io/kubernetes`);
  return found;
}

async function digest(): Promise<string> {
  const hash = createHash('sha256').update(process.arch);
  for (const file of globSync('{go.mod,go.sum,*.go,*/*.go}', { cwd: kubenodeSources }).toSorted())
    hash.update(`\0${file}\0`).update(await readFile(join(kubenodeSources, file)));
  return hash.digest('hex').slice(0, 16);
}

const go = (env: Record<string, string>, ...args: string[]) =>
  run('go', ['build', '-mod=readonly', '-trimpath', ...args], { cwd: kubenodeSources, env });

async function compile(out: string, version: string): Promise<void> {
  const [major, minor] = version.split('.');
  const stamp = Object.entries({ gitVersion: `v${version}`, gitMajor: major, gitMinor: minor });
  const linked = ['-s', '-w', ...stamp.map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)].join(' ');
  await go({}, '-ldflags', linked, '-o', join(out, 'kubenode'), '.');
  await go({ CGO_ENABLED: '0' }, '-ldflags', '-s -w', '-o', join(out, 'pause'), './pause'); // static, because its image has no libraries
}

/**
 * Builds the programs of the cluster, once for the same sources. @returns the folder with the programs and the archive `pause.tar`
 *
 * @throws Error with the compiler's message
 */
export async function kubenode(note: Note): Promise<string> {
  const cache = join(cacheDir(), 'kubenode');
  const dir = join(cache, await digest());
  if (existsSync(dir)) return dir;
  const version = await release();
  note(`building Kubernetes ${version} from its Go modules: once, about 6 minutes on two cores`);
  const next = `${dir}.${process.pid}`;
  await mkdir(next, { recursive: true });
  try {
    await compile(next, version);
    await Promise.all(PROGRAMS.map((name) => symlink('kubenode', join(next, name))));
    await writePauseImage(next);
    await rename(next, dir);
  } catch (error) {
    await rm(next, { recursive: true, force: true });
    if (!existsSync(dir)) throw error; // otherwise another process has built the programs
  }
  // Removes earlier versions, which take 170 MB each. A running cluster keeps its files open.
  for (const name of await readdir(cache))
    if (/^[0-9a-f]{16}$/.test(name) && join(cache, name) !== dir) await rm(join(cache, name), { recursive: true });
  return dir;
}
