import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Buildah } from './buildah.js';
import { debianBase } from './debian-base.js';
import { MachineLacks, missingForImages } from './machine.js';
import { cacheDir, type Note, root } from './settings.js';

const DOCKERFILE = 'docker/sandbox.Dockerfile';
const CERTIFICATES = '/etc/ssl/certs';
const INPUTS = [DOCKERFILE, `${DOCKERFILE}.dockerignore`, 'docker/*.txt', 'libs/sandbox/runner/*.py'];

export interface SandboxImage {
  /** Name of the image. Its tag is a digest of its sources. */
  readonly name: string;
  /** docker-archive; '' for an image that the cluster pulls by itself. */
  readonly archive: string;
}

/**
 * Builds the image of sandbox pods from this working tree, once for the same sources. ETUDE_SANDBOX_IMAGE names a finished image
 * instead. ETUDE_SANDBOX_BASE names a base image; the default is a Debian made by debootstrap.
 *
 * @throws MachineLacks; Error with the builder's words
 */
export async function sandboxImage(note: Note): Promise<SandboxImage> {
  const given = process.env['ETUDE_SANDBOX_IMAGE'];
  if (given) return { name: given, archive: '' };
  const missing = missingForImages();
  if (missing.length > 0) throw new MachineLacks("the sandbox image can't be built here", missing);
  const images = join(cacheDir(), 'images');
  await mkdir(images, { recursive: true });
  const buildah = await Buildah.in(join(cacheDir(), 'buildah'));
  const base = process.env['ETUDE_SANDBOX_BASE'] ?? (await debianBase(buildah, note));
  const digest = await digestOf(base);
  const name = `localhost/etude-sandbox:${digest}`;
  const archive = join(images, `etude-sandbox-${digest}.tar`);
  if (!existsSync(archive)) {
    note('building the sandbox image: once for this working tree');
    await build(buildah, { base, name, archive });
  }
  for (const file of await readdir(images)) if (join(images, file) !== archive && file.endsWith('.tar')) await rm(join(images, file));
  return { name, archive };
}

async function digestOf(base: string): Promise<string> {
  const hash = createHash('sha256').update(base);
  for (const file of globSync(INPUTS, { cwd: root }).toSorted()) hash.update(`\0${file}\0`).update(await readFile(join(root, file)));
  return hash.digest('hex').slice(0, 16);
}

async function build(buildah: Buildah, { base, name, archive }: SandboxImage & { base: string }): Promise<void> {
  const index = process.env['PIP_INDEX_URL'];
  // Uses the machine's certificate authorities, because the package index may need one that the base image lacks.
  const authorities = existsSync(`${CERTIFICATES}/ca-certificates.crt`);
  await buildah.build({
    context: root,
    file: join(root, DOCKERFILE),
    name,
    buildArgs: {
      BASE: base,
      ...(index ? { PIP_INDEX_URL: index } : {}),
      ...(authorities ? { PIP_CERT: '/run/certificates/ca-certificates.crt' } : {}),
    },
    volumes: authorities ? [`${CERTIFICATES}:/run/certificates:ro`] : [],
  });
  const next = `${archive}.${process.pid}`;
  await buildah.save(name, next);
  await rename(next, archive);
}
