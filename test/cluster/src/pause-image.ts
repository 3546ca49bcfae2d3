import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.js';

export const PAUSE_IMAGE = 'localhost/etude-pause:1';

const sha256 = (content: Buffer | string) => createHash('sha256').update(content).digest('hex');

/** Packs the static program `dir/pause` as an image, without a container engine. @returns the path of the archive */
export async function writePauseImage(dir: string): Promise<string> {
  const archive = join(dir, 'pause.tar');
  const tar = (...args: string[]) => run('tar', ['--owner=0', '--group=0', '--mtime=@0', ...args], { cwd: dir });
  await tar('-cf', 'layer.tar', 'pause');
  const config = JSON.stringify({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Entrypoint: ['/pause'], User: '65535:65535' },
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(await readFile(join(dir, 'layer.tar')))}`] },
  });
  const configName = `${sha256(config)}.json`;
  await writeFile(join(dir, configName), config);
  await writeFile(join(dir, 'manifest.json'), JSON.stringify([{ Config: configName, RepoTags: [PAUSE_IMAGE], Layers: ['layer.tar'] }]));
  await tar('-cf', 'pause.tar', configName, 'layer.tar', 'manifest.json');
  await Promise.all([configName, 'layer.tar', 'manifest.json'].map((name) => rm(join(dir, name))));
  return archive;
}
