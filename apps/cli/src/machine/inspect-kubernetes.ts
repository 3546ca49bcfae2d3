import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { z } from 'zod';
import type { Cli } from '../cli.js';
import { isClusterGiven } from '../stack/first-cluster.js';
import { type Finding, firstWords } from './inspect-machine.js';

const COST = '`up --sandbox kubernetes` does not start';
/** Tries the kernel and asks several programs for their versions. */
const CHECK_TIMEOUT_MS = 60_000;
const Lacks = z.object({ lacks: z.array(z.string()) });

const finding = (state: string, fix = ''): Finding => ({
  name: 'kubernetes',
  ok: fix === '',
  needed: false,
  state,
  cost: fix === '' ? '' : COST,
  fix,
});

function given(kubeconfig: string, image: string | undefined): Finding {
  const answer = firstWords('kubectl', ['--kubeconfig', kubeconfig, 'version', '--request-timeout=5s', '-o', 'json']);
  if (answer === null) {
    const fix = 'Look at KUBECONFIG and its cluster, install kubectl, or unset KUBECONFIG for a cluster of its own';
    return finding(`${kubeconfig} does not answer to kubectl`, fix);
  }
  if (image) return finding(`${kubeconfig} answers; its pods are of ${image}`);
  return finding(
    `${kubeconfig} answers; which image its pods are of is not set`,
    'Build docker/sandbox.Dockerfile, push it to where the cluster pulls from, and set ETUDE_SANDBOX_IMAGE to its name',
  );
}

/** What the starter of clusters says itself that it lacks here. */
function own({ root, settings }: Pick<Cli, 'root' | 'settings'>): Finding {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'test/cluster/dist/main.js'), 'check'], {
    cwd: root,
    env: { ...settings.environment },
    encoding: 'utf8',
    timeout: CHECK_TIMEOUT_MS,
  });
  if (status !== 0) {
    const why = (stderr ?? '').trim().split('\n').at(-1) ?? '';
    return finding(`none is given; whether one can be started here could not be found out: ${why}`, 'Build it: ./etude does, or tsc -b');
  }
  const { lacks } = Lacks.parse(JSON.parse(stdout));
  if (lacks.length === 0) return finding('none is given; `up --sandbox kubernetes` starts one of its own');
  return finding('none is given, and one of its own can not be started here', lacks.join('; '));
}

/** What `up --sandbox kubernetes` would use. Takes seconds, so that only `doctor` asks. */
export function inspectKubernetes({ root, settings }: Pick<Cli, 'root' | 'settings'>): Finding {
  const { KUBECONFIG: kubeconfig, ETUDE_SANDBOX_IMAGE: image } = settings.environment;
  if (isClusterGiven(settings.environment)) return given(kubeconfig ?? '', image);
  return own({ root, settings });
}
