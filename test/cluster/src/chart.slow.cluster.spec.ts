import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChartRig, startChartRig } from './chart-rig.js';
import { cluster } from './cluster.js';

const note = (line: string) => process.stderr.write(`cluster: ${line}\n`);
const test = cluster();
const SAMPLES = 300;
/** Tasks in flight. */
const AT_ONCE = 150;
const SCALING = [
  'autoscaling.pollingSeconds=2',
  'autoscaling.cooldownSeconds=20',
  'settings.ETUDE_ROLLOUT_CONCURRENCY=2',
  'rolloutWorker.autoscaling.max=4',
  'rolloutWorker.autoscaling.jobsPerPod=8',
];

describe.skipIf(test.faults === null)('the chart over a longer time', () => {
  let rig: ChartRig;

  beforeAll(async () => {
    rig = await startChartRig(test, note);
    await rig.apply();
  });
  afterAll(() => rig?.stop());

  const replicas = async (name: string) => Number(await rig.shown('deployment', `etude-${name}`, '{.status.readyReplicas}'));

  it('loses and repeats no task during a rollback', async () => {
    await rig.apply('settings.ETUDE_LOG_LEVEL=warn');
    const before = await rig.asked();
    const running = rig.evalRun(24);
    running.catch(() => undefined); // `running` is awaited below
    await until(async () => (await rig.asked()) >= before + 2, { everyMs: 50, what: 'the first tasks' });
    await rig.helmed('rollback', 'etude', '--wait', '--timeout', '180s');
    expect(await running).toMatchObject({ problems: 1, samples: 24, verdicts: { AC: 24 } });
    expect((await rig.asked()) - before).toBe(24);
  });

  it('keeps its secrets when it is upgraded', async () => {
    const before = await rig.shown('secret', 'etude-secrets', '{.data}');
    await rig.apply();
    expect(await rig.shown('secret', 'etude-secrets', '{.data}')).toBe(before);
  });

  it('has nothing that the doctor finds wrong, and then that no controller is left', async () => {
    expect((await rig.doctor()).filter(({ ok }) => !ok)).toEqual([]);
    await rig.kubectl('scale', 'deployment/etude-sandbox-controller', '--replicas=0');
    await until(async () => (await rig.doctor()).some(({ name, ok }) => name === 'sandboxes' && !ok), { everyMs: 500, what: 'a finding' });
    await rig.kubectl('scale', 'deployment/etude-sandbox-controller', '--replicas=1');
  });

  const startScaler = {
    keda: () => test.startKeda(note),
    hpa: () => test.startPrometheus(note, { address: 'etude-gateway-metrics.etude.svc.cluster.local:8080', namespace: 'etude' }),
  };

  describe.each(['keda', 'hpa'] as const)('scaled by %s', (kind) => {
    const idleConsolidation = () =>
      until(async () => (await replicas('consolidation-worker')) === (kind === 'keda' ? 0 : 1), {
        timeoutMs: 120_000,
        everyMs: 500,
        what: 'no idle consolidation',
      });

    it(`goes from 1 worker to 4 and back with ${SAMPLES} tasks, and loses and repeats none`, { timeout: 1_200_000 }, async () => {
      // The scaler knows the objects before the chart makes them, and reads the metrics once they exist.
      await startScaler[kind]();
      await rig.apply(`autoscaling.kind=${kind}`, ...SCALING);
      await idleConsolidation();
      const before = await rig.asked();
      const started = performance.now();
      const since = () => `${((performance.now() - started) / 1_000).toFixed(0)} s`;
      const running = rig.evalRun(SAMPLES, AT_ONCE);
      running.catch(() => undefined); // `running` is awaited below
      await until(async () => (await replicas('rollout-worker')) === 4, { timeoutMs: 180_000, everyMs: 200, what: '4 rollout workers' });
      note(`${kind}: 4 rollout workers after ${since()}`);
      expect(await running.catch(rig.explained)).toMatchObject({ problems: 1, samples: SAMPLES, verdicts: { AC: SAMPLES } });
      note(`${kind}: ${SAMPLES} tasks after ${since()}`);
      await until(async () => (await replicas('rollout-worker')) === 1, { timeoutMs: 180_000, everyMs: 500, what: '1 rollout worker' });
      note(`${kind}: 1 rollout worker after ${since()}`);
      expect((await rig.asked()) - before).toBe(SAMPLES);
    });

    it('consolidates, also where no worker ran', async () => {
      await idleConsolidation();
      const started = performance.now();
      expect(JSON.parse(await rig.cli('consolidate', '--json'))).toMatchObject({ state: expect.stringContaining('DONE') as string });
      note(`${kind}: a consolidation run after ${((performance.now() - started) / 1_000).toFixed(0)} s`);
    });
  });
});
