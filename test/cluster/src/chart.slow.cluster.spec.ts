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
    running.catch(() => undefined); // it is awaited below
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

  it(`goes by KEDA from 1 worker to 4 and back with ${SAMPLES} tasks, and loses and repeats none`, { timeout: 1_200_000 }, async () => {
    // The scaler knows the objects before the chart makes them, and reads the metrics once they exist.
    await test.startKeda(note);
    await rig.apply('autoscaling.kind=keda', ...SCALING);
    await until(async () => (await replicas('consolidation-worker')) === 0, {
      timeoutMs: 120_000,
      everyMs: 500,
      what: 'no idle consolidation',
    });
    const before = await rig.asked();
    const started = performance.now();
    const since = () => `${((performance.now() - started) / 1_000).toFixed(0)} s`;
    const running = rig.evalRun(SAMPLES, AT_ONCE);
    running.catch(() => undefined); // it is awaited below
    await until(async () => (await replicas('rollout-worker')) === 4, { timeoutMs: 180_000, everyMs: 200, what: '4 rollout workers' });
    note(`keda: 4 rollout workers after ${since()}`);
    expect(await running.catch(rig.explained)).toMatchObject({ problems: 1, samples: SAMPLES, verdicts: { AC: SAMPLES } });
    note(`keda: ${SAMPLES} tasks after ${since()}`);
    await until(async () => (await replicas('rollout-worker')) === 1, { timeoutMs: 180_000, everyMs: 500, what: '1 rollout worker' });
    note(`keda: 1 rollout worker after ${since()}`);
    expect((await rig.asked()) - before).toBe(SAMPLES);
  });
});
