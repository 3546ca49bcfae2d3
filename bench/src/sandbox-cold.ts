import { randomUUID } from 'node:crypto';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { percentile, timed } from './figures.js';
import { claimToFirstByte, never } from './sandbox-claims.js';
import { type DriverChoice, type KubernetesChoice, newInstallation, startDriver, templatesOf } from './sandbox-drivers.js';

export interface Cold {
  readonly coldMs: number;
  readonly bareMs: number;
}

/** p50 from a claim without a warm sandbox to its first byte. Baseline: a ready pod, or a Python under bubblewrap. */
export async function coldStarts(choice: DriverChoice, n: number): Promise<Cold> {
  const fresh = choice.kind === 'kubernetes' ? { ...choice, ...newInstallation(), warm: 0 } : { ...choice, warm: 0 };
  const coldMs: number[] = [];
  const bareMs: number[] = [];
  const bare = fresh.kind === 'kubernetes' ? await barePods(fresh) : bareProcess;
  for (let i = 0; i < n; i++) {
    const started = await startDriver(fresh);
    coldMs.push(await claimToFirstByte(started.driver));
    await started.close();
    bareMs.push(await bare());
  }
  return { coldMs: percentile(coldMs, 50), bareMs: percentile(bareMs, 50) };
}

async function bareProcess(): Promise<number> {
  const args = ['--unshare-all', '--ro-bind', '/usr', '/usr', '--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64'];
  return timed(async () => {
    const child = spawn('bwrap', [...args, '--proc', '/proc', '--dev', '/dev', '/usr/bin/python3', '-I', '-S', '-c', 'print(1)'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child, 'exit');
  });
}

/** Creates a pod like the driver's, without the driver, and waits until the pod is ready. */
async function barePods(choice: KubernetesChoice): Promise<() => Promise<number>> {
  const { KubeApi } = await import('@etude/sandbox/kubernetes/kube-api');
  const { PodWatch } = await import('@etude/sandbox/kubernetes/pod-watch');
  const { podKind, podManifest } = await import('@etude/sandbox/kubernetes/pod-spec');
  const { SandboxTemplates } = await import('@etude/sandbox/kubernetes/sandbox-template');
  const { installation, kubeconfigPath, namespace } = choice;
  const template = SandboxTemplates.parse(templatesOf(choice))['default'];
  if (!template) throw new Error('there is no default template');
  const api = KubeApi.connect({ kubeconfigPath, namespace });
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: console.error };
  return async () => {
    const watch = new PodWatch(api, { selector: `etude.dev/pool=bare-${installation}`, logger });
    await watch.start(AbortSignal.timeout(10_000));
    const variety = { slot: 0, nonce: randomUUID(), token: randomUUID(), user: 100_000 };
    const manifest = podManifest(podKind('default', template, `bare-${installation}`, 'bench'), variety);
    let uid = '';
    const ms = await timed(async () => {
      const ready = new Promise<void>((resolve) =>
        watch.subscribe(({ pod, gone }) => !gone && pod.status.conditions['Ready']?.status === 'True' && resolve()),
      );
      ({ uid } = await api.createPod(manifest, never()));
      await ready;
    });
    await api.deletePod(manifest.metadata.name, { uid, graceSeconds: 0 });
    await watch.close();
    return ms;
  };
}
