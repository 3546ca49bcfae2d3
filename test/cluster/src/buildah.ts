import { mkdir, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.js';
import type { Arch } from './machine.js';

const OVERLAYFS_MAGIC = 0x794c7630;

export interface BuildOptions {
  readonly context: string;
  readonly file: string;
  readonly name: string;
  readonly arch: Arch;
  readonly buildArgs?: Readonly<Record<string, string>>;
  /** Folders that are mounted only during the build, each as `FROM:TO:ro`. */
  readonly volumes?: readonly string[];
}

/** Builds images without a daemon, in its own store. Steps run under chroot, because nested containers are often forbidden. */
export class Buildah {
  private constructor(private readonly store: readonly string[]) {}

  static async in(dir: string): Promise<Buildah> {
    await mkdir(dir, { recursive: true });
    // One overlay file system can't lie on another. The driver `vfs` copies the files and works everywhere.
    const driver = (await statfs(dir)).type === OVERLAYFS_MAGIC ? 'vfs' : 'overlay';
    return new Buildah(['--root', join(dir, 'storage'), '--runroot', join(dir, 'run'), '--storage-driver', driver]);
  }

  private call(...args: string[]): Promise<string> {
    return run('buildah', [...this.store, ...args], { env: { BUILDAH_ISOLATION: 'chroot' } });
  }

  async has(name: string): Promise<boolean> {
    return (await this.call('images', '--noheading', '--format', '{{.Name}}:{{.Tag}}')).split('\n').includes(name);
  }

  /** Builds an image. Uses local base images and pulls missing images. */
  async build({ context, file, name, arch, buildArgs = {}, volumes = [] }: BuildOptions): Promise<void> {
    const given = Object.entries(buildArgs).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]);
    const seen = volumes.flatMap((volume) => ['--volume', volume]);
    // Equal sources give equal layers, because the files in a layer carry no build time.
    await this.call(
      'build',
      '-q',
      '--platform',
      `linux/${arch}`,
      '--timestamp',
      '0',
      '-f',
      file,
      '--ignorefile',
      `${file}.dockerignore`,
      ...given,
      ...seen,
      '-t',
      name,
      context,
    );
  }

  async digest(name: string): Promise<string> {
    return (await this.call('inspect', '--type', 'image', '--format', '{{.FromImageDigest}}', name)).trim();
  }

  async remove(name: string): Promise<void> {
    await this.call('rmi', name);
  }

  /** Runs a program of an image, in the network of this machine. Returns the program's output. */
  async output(name: string, ...command: readonly string[]): Promise<string> {
    const container = (await this.call('from', name)).trim();
    try {
      return await this.call('run', container, '--', ...command);
    } finally {
      await this.call('rm', container);
    }
  }

  async import(archive: string, name: string, arch: Arch): Promise<void> {
    const container = (await this.call('from', '--platform', `linux/${arch}`, 'scratch')).trim();
    try {
      await this.call('add', '-q', container, archive, '/');
      await this.call('commit', '-q', container, name);
    } finally {
      await this.call('rm', container);
    }
  }

  async save(name: string, archive: string): Promise<void> {
    await rm(archive, { force: true });
    await this.call('push', '-q', name, `docker-archive:${archive}:${name}`);
  }
}
