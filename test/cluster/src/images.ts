import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readdir, readFile, realpath, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Buildah, type BuildOptions } from './buildah.js';
import { run } from './command.js';
import { debianBase } from './debian-base.js';
import { type Arch, MachineLacks, missingForImages, OWN_ARCH } from './machine.js';
import { cacheDir, type Note, root } from './settings.js';

const CERTIFICATES = '/etc/ssl/certs';
const AUTHORITIES = '/run/certificates/ca-certificates.crt';

export interface Image {
  /** Name of the image. Its tag is a digest of its sources. */
  readonly name: string;
  /** docker-archive; '' for an image that the cluster pulls by itself. */
  readonly archive: string;
}

interface Recipe {
  readonly name: string;
  /** Variables that name a finished image (`given`) and a base image (`base`). */
  readonly given: string;
  readonly base: string;
  /** Packages of the Debian that is the default base. */
  readonly packages: readonly string[];
  /** Files that the image is made of, for its digest. */
  readonly inputs: readonly string[];
  readonly options: (base: string, arch: Arch) => Promise<Pick<BuildOptions, 'buildArgs' | 'volumes'>>;
}

/** Whether to use the machine's certificate authorities. The package index may need an authority that the base image lacks. */
const authorities = existsSync(`${CERTIFICATES}/ca-certificates.crt`);
const trusted = authorities ? [`${CERTIFICATES}:/run/certificates:ro`] : [];

const SANDBOX: Recipe = {
  name: 'sandbox',
  given: 'ETUDE_SANDBOX_IMAGE',
  base: 'ETUDE_SANDBOX_BASE',
  packages: ['python3'],
  inputs: ['docker/*.txt', 'libs/sandbox/runner/*.py'],
  options: async (base) => {
    const index = process.env['PIP_INDEX_URL'];
    const pip = { ...(index ? { PIP_INDEX_URL: index } : {}), ...(authorities ? { PIP_CERT: AUTHORITIES } : {}) };
    return { buildArgs: { BASE: base, ...pip }, volumes: trusted };
  },
};

const SERVICES: Recipe = {
  name: 'services',
  given: 'ETUDE_SERVICES_IMAGE',
  base: 'ETUDE_SERVICES_BASE',
  packages: ['libatomic1', 'libstdc++6', 'ca-certificates', 'binutils'],
  inputs: [
    'docker/production-files.mjs',
    'package*.json',
    'tsconfig*.json',
    '{apps,libs,test,bench}/{,*/}package.json',
    '{apps,libs}/*/src/**/*.{ts,tsx,css,lua,sql,json}',
    'apps/console/{index.html,build.mjs,public/*}',
    'libs/{domain/python,sandbox/runner}/**/*.py',
  ],
  // The base has no npm, so this machine's npm is used.
  options: async (base, arch) => {
    const npm = dirname(dirname(dirname(await realpath((await run('sh', ['-c', 'command -v npm'])).trim()))));
    const registry = (await run('npm', ['config', 'get', 'registry'], { cwd: root })).trim();
    const node = arch === OWN_ARCH ? dirname(process.execPath) : await nodeFor(arch);
    const trust: Record<string, string> = authorities ? { NODE_EXTRA_CA_CERTS: AUTHORITIES } : {};
    return {
      buildArgs: { BUILD: base, BASE: base, NPM: '/opt/node/node /opt/npm/npm/bin/npm-cli.js', NPM_CONFIG_REGISTRY: registry, ...trust },
      volumes: [`${node}:/opt/node:ro`, `${npm}:/opt/npm:ro`, ...trusted],
    };
  },
};

/** The folder of Node.js for another processor, from its package in the lock. */
async function nodeFor(arch: Arch): Promise<string> {
  const name = `node-linux-${arch === 'amd64' ? 'x64' : arch}`;
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Lock;
  const { version, integrity } = lock.packages[`node_modules/${name}`] ?? {};
  const dir = join(cacheDir(), `${name}-${version}`);
  if (existsSync(dir)) return join(dir, 'package/bin');
  const next = `${dir}.${process.pid}`;
  await mkdir(next, { recursive: true });
  const [packed] = JSON.parse(await run('npm', ['pack', '--json', `${name}@${version}`, '--pack-destination', next])) as [Packed];
  if (packed.integrity !== integrity)
    throw new Error(`${name} ${version} differs from package-lock.json: its integrity is ${packed.integrity}`);
  await run('tar', ['-xzf', join(next, packed.filename), '-C', next]);
  await rename(next, dir);
  return join(dir, 'package/bin');
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>;
}

interface Packed {
  readonly filename: string;
  readonly integrity: string;
}

/** Builds the image of the services once more, from nothing. @returns digests of the image of `servicesImage` and of the new image */
export async function servicesTwice(note: Note): Promise<readonly [string, string]> {
  const { name } = await servicesImage(note);
  const buildah = await Buildah.in(join(cacheDir(), 'buildah'));
  const base = await debianBase(buildah, SERVICES.packages, note);
  const again = `${name}-again`;
  const given = await SERVICES.options(base, OWN_ARCH);
  await buildah.build({ context: root, file: join(root, 'docker/services.Dockerfile'), name: again, arch: OWN_ARCH, ...given });
  try {
    return [await buildah.digest(name), await buildah.digest(again)];
  } finally {
    await buildah.remove(again);
  }
}

/** Builds the image of sandbox pods. ETUDE_SANDBOX_IMAGE names a finished image instead, ETUDE_SANDBOX_BASE another base image. */
export const sandboxImage = (note: Note, arch = OWN_ARCH): Promise<Image> => imageOf(SANDBOX, note, { arch });

/** Builds the image of the services. ETUDE_SERVICES_IMAGE names a finished image instead, ETUDE_SERVICES_BASE another base image. */
export const servicesImage = (note: Note, arch = OWN_ARCH): Promise<Image> => imageOf(SERVICES, note, { arch });

/** Builds the image of the services of an earlier version from its own sources. @param tree their folder */
export const earlierServicesImage = (note: Note, tree: string): Promise<Image> =>
  imageOf({ ...SERVICES, given: '' }, note, { tree, kind: 'earlier-services' });

export async function redisImage(note: Note): Promise<Image> {
  const images = join(cacheDir(), 'images');
  const buildah = await Buildah.in(join(cacheDir(), 'buildah'));
  const name = await debianBase(buildah, ['redis-server'], note);
  const archive = join(images, `etude-redis-${name.split(':').at(-1)}.tar`);
  if (!existsSync(archive)) await buildah.save(name, archive);
  return { name, archive };
}

interface ImageOptions {
  /** Folder of the sources; default this working tree. */
  readonly tree?: string;
  /** Names the image; default the recipe's name. */
  readonly kind?: string;
  readonly arch?: Arch;
}

/**
 * Builds an image from sources, by default from this working tree. Equal sources are built once. The default base image is a Debian made by
 * debootstrap.
 *
 * @throws MachineLacks; Error with the builder's message
 */
async function imageOf(
  recipe: Recipe,
  note: Note,
  { tree = root, kind = recipe.name, arch = OWN_ARCH }: ImageOptions = {},
): Promise<Image> {
  const { given, base: baseName, packages, inputs, options } = recipe;
  const finished = process.env[given];
  if (finished) return { name: finished, archive: '' };
  const missing = missingForImages(arch);
  if (missing.length > 0) throw new MachineLacks(`the image of ${kind} can't be built here`, missing);
  const images = join(cacheDir(), 'images', arch === OWN_ARCH ? '' : arch);
  await mkdir(images, { recursive: true });
  const buildah = await Buildah.in(join(cacheDir(), 'buildah'));
  const base = process.env[baseName] ?? (await debianBase(buildah, packages, note, arch));
  const file = `docker/${recipe.name}.Dockerfile`;
  const digest = await digestOf(tree, base, [file, `${file}.dockerignore`, ...inputs]);
  const name = `localhost/etude-${kind}:${digest}`;
  const archive = join(images, `etude-${kind}-${digest}.tar`);
  if (!existsSync(archive)) {
    note(`building the image of ${kind}: once for the same sources`);
    await buildah.build({ context: tree, file: join(tree, file), name, arch, ...(await options(base, arch)) });
    const next = `${archive}.${process.pid}`;
    await buildah.save(name, next);
    await rename(next, archive);
  }
  for (const old of await readdir(images))
    if (old.startsWith(`etude-${kind}-`) && join(images, old) !== archive && old.endsWith('.tar')) await rm(join(images, old));
  return { name, archive };
}

async function digestOf(tree: string, base: string, inputs: readonly string[]): Promise<string> {
  const hash = createHash('sha256').update(base);
  for (const file of globSync([...inputs], { cwd: tree }).toSorted())
    if (!/node_modules|\.spec\.ts$/.test(file)) hash.update(`\0${file}\0`).update(await readFile(join(tree, file)));
  return hash.digest('hex').slice(0, 16);
}
