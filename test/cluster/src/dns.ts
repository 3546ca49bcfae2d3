import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startDaemon } from './daemons.js';
import { goProgram } from './go-programs.js';
import { kubeconfigOf, type Place } from './place.js';
import type { Note } from './settings.js';

export async function startDns(place: Place, note: Note): Promise<void> {
  const { dir, network } = place;
  const zones = `kubernetes cluster.local {\n    kubeconfig ${kubeconfigOf(dir)}\n  }`;
  await writeFile(join(dir, 'Corefile'), `.:53 {\n  bind ${network.nodeIp}\n  errors\n  ${zones}\n}\n`);
  await symlink(await goProgram('coredns', note), join(dir, 'coredns')).catch(({ code }: NodeJS.ErrnoException) => {
    if (code !== 'EEXIST') throw new Error(`${dir}/coredns can't be made: ${code}`);
  });
  await startDaemon(place, 'dns');
}
