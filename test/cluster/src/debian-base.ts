import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Buildah } from './buildah.js';
import { run } from './command.js';
import { OWN_ARCH } from './machine.js';
import { cacheDir, type Note } from './settings.js';

const SUITE = 'bookworm';
/** Files that no program of the sandbox reads. */
const UNUSED = [
  'dev/*',
  'var/cache/apt/*',
  'var/lib/apt/lists/*',
  'var/log/*',
  'usr/share/doc',
  'usr/share/man',
  'usr/share/info',
  'usr/share/locale',
];

const mirror = () => process.env['ETUDE_DEBIAN_MIRROR'] ?? 'http://deb.debian.org/debian';

/** The base image on machines without a registry, made once for the same packages. @returns its name in the builder's store */
export async function debianBase(buildah: Buildah, packages: readonly string[], note: Note, arch = OWN_ARCH): Promise<string> {
  const recipe = createHash('sha256')
    .update(JSON.stringify([SUITE, packages, UNUSED, arch]))
    .digest('hex')
    .slice(0, 12);
  const name = `localhost/etude-debian:${recipe}`;
  if (await buildah.has(name)) return name;
  note(`making a Debian with ${packages.join(', ')} by debootstrap: once, about a minute`);
  await mkdir(cacheDir(), { recursive: true });
  const dir = await mkdtemp(join(cacheDir(), 'debian-'));
  try {
    const args = [`--arch=${arch}`, '--variant=minbase', `--include=${packages.join(',')}`, SUITE, join(dir, 'root'), mirror()];
    await run('debootstrap', args);
    await run('sh', ['-ec', `cd "$0"; rm -rf ${UNUSED.join(' ')}; tar --numeric-owner -cf ../root.tar .`, join(dir, 'root')]);
    await buildah.import(join(dir, 'root.tar'), name, arch);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
  return name;
}
