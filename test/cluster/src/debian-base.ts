import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Buildah } from './buildah.js';
import { run } from './command.js';
import { cacheDir, type Note } from './settings.js';

const SUITE = 'bookworm';
const PACKAGES = ['python3'];
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

/** URL of the Debian mirror for debootstrap (ETUDE_DEBIAN_MIRROR). */
const mirror = () => process.env['ETUDE_DEBIAN_MIRROR'] ?? 'http://deb.debian.org/debian';

/**
 * Makes a small Debian with Python and its whole standard library, once. It is the base image on machines without a registry.
 *
 * @returns the name of the image in the builder's store
 */
export async function debianBase(buildah: Buildah, note: Note): Promise<string> {
  const recipe = createHash('sha256')
    .update(JSON.stringify([SUITE, PACKAGES, UNUSED]))
    .digest('hex')
    .slice(0, 12);
  const name = `localhost/etude-debian:${recipe}`;
  if (await buildah.has(name)) return name;
  note('making a Debian with Python by debootstrap: once, about a minute');
  await mkdir(cacheDir(), { recursive: true });
  const dir = await mkdtemp(join(cacheDir(), 'debian-'));
  try {
    const args = ['--variant=minbase', `--include=${PACKAGES.join(',')}`, SUITE, join(dir, 'root'), mirror()];
    await run('debootstrap', args);
    await run('sh', ['-ec', `cd "$0"; rm -rf ${UNUSED.join(' ')}; tar --numeric-owner -cf ../root.tar .`, join(dir, 'root')]);
    await buildah.import(join(dir, 'root.tar'), name);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
  return name;
}
