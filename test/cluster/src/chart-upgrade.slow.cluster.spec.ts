import { statSync } from 'node:fs';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChartRig, startChartRig } from './chart-rig.js';
import { cluster } from './cluster.js';

const note = (line: string) => process.stderr.write(`cluster: ${line}\n`);
const test = cluster();
const faults = test.faults;

/** Tasks in flight. */
const IN_FLIGHT = 3;

describe.skipIf(faults === null)('the chart', () => {
  let rig: ChartRig;

  beforeAll(async () => {
    rig = await startChartRig(test, note);
  });
  afterAll(() => rig?.stop());

  it('is ready within two minutes, and solves a task', async () => {
    const started = performance.now();
    await rig.apply();
    expect(await rig.helmed('test', 'etude').catch(rig.explained)).toContain('Phase:          Succeeded');
    const seconds = (performance.now() - started) / 1_000;
    note(
      `install to first solved task: ${seconds.toFixed(1)} s; image of services: ${(statSync(rig.archive).size / 2 ** 20).toFixed(0)} MiB`,
    );
    expect(seconds).toBeLessThan(120);
    expect(statSync(rig.archive).size).toBeLessThan(250 * 2 ** 20);
  });

  const ready = (kind: string) => rig.kubectl('rollout', 'status', kind, '--timeout=120s');
  const killRedis = async () => {
    const { killSupervisor } = faults ?? expect.unreachable();
    killSupervisor(await rig.shown('pod', 'etude-redis-0', '{.metadata.uid}'));
    await until(async () => (await rig.shown('pod', 'etude-redis-0', '{.status.containerStatuses[0].restartCount}')) === '1');
    await ready('statefulset/etude-redis');
  };
  // There is only one node, so evicted pods come back once the node takes pods again.
  const drainNode = async (...only: string[]) => {
    await rig.kubectl('drain', 'node1', '--ignore-daemonsets', '--delete-emptydir-data', '--force', '--timeout=120s', ...only);
    await rig.kubectl('uncordon', 'node1');
    for (const name of ['gateway', 'rollout-worker', 'consolidation-worker', 'sandbox-controller']) await ready(`deployment/etude-${name}`);
  };

  // If Redis is evicted too, the answer of a model call in flight can't be stored, so the call is made again.
  it.each([
    ['an upgrade', 24, 0, () => rig.apply('settings.ETUDE_LOG_LEVEL=warn')],
    ['the death of Redis', 12, 0, killRedis],
    ['the drain of a node', 24, 0, () => drainNode('--pod-selector=app.kubernetes.io/name!=etude-redis')],
    ["the drain of Redis' own node", 24, IN_FLIGHT, drainNode],
  ])('loses no task during %s, of %i, and asks the model again at most %i times', async (what, samples, askedAgainMax, change) => {
    const before = await rig.asked();
    const running = rig.evalRun(samples, IN_FLIGHT);
    running.catch(() => undefined); // `running` is awaited below
    await until(async () => (await rig.asked()) >= before + 2, { everyMs: 50, what: 'the first tasks' });
    const started = performance.now();
    await change();
    const during = (await rig.asked()) - before;
    note(`${what} took ${((performance.now() - started) / 1_000).toFixed(1)} s; ${during} of ${samples} tasks had asked the model by then`);
    expect(await running.catch(rig.explained)).toMatchObject({ problems: 1, samples, verdicts: { AC: samples } });
    const asked = (await rig.asked()) - before;
    expect(asked).toBeGreaterThanOrEqual(samples);
    expect(asked).toBeLessThanOrEqual(samples + askedAgainMax);
    expect(during).toBeLessThan(samples);
  });

  it('leaves only the volume of Redis when it is uninstalled', async () => {
    await rig.helmed('uninstall', 'etude', '--wait');
    const kinds = 'deployments,statefulsets,services,secrets,configmaps,networkpolicies,roles,rolebindings,poddisruptionbudgets,pvc';
    const left = (await rig.kubectl('get', kinds, '-o', 'name')).trim().split('\n');
    expect(left).toEqual(['configmap/kube-root-ca.crt', 'persistentvolumeclaim/data-etude-redis-0']);
    expect(await test.kubectl(['get', 'namespaces', '-o', 'name'])).not.toContain('etude-sandboxes');
  });
});
