import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChartRig, startChartRig } from './chart-rig.js';
import { cluster } from './cluster.js';
import { EARLIER_VERSION, hasEarlierVersion } from './earlier-version.js';

const note = (line: string) => process.stderr.write(`cluster: ${line}\n`);
const test = cluster();
const SAMPLES = 36;

describe.skipIf(test.faults === null || !hasEarlierVersion())(`the chart of the earlier version ${EARLIER_VERSION.slice(0, 8)}`, () => {
  let rig: ChartRig;

  beforeAll(async () => {
    rig = await startChartRig(test, note);
    await rig.applyEarlier();
  }, 900_000);
  afterAll(() => rig?.stop());

  const image = () => rig.shown('deployment', 'etude-rollout-worker', '{.spec.template.spec.containers[0].image}');

  // Each case leaves the version with which the next case starts.
  it.each([
    ['an upgrade to this version', () => rig.apply()],
    ['a rollback', () => rig.helmed('rollback', 'etude', '--wait', '--timeout', '180s')],
    ['the next upgrade', () => rig.apply()],
  ])('loses and repeats no task during %s, and consolidates after it', async (what, change) => {
    const [before, from] = [await rig.asked(), await image()];
    const running = rig.evalRun(SAMPLES);
    running.catch(() => undefined); // `running` is awaited below
    await until(async () => (await rig.asked()) >= before + 2, { everyMs: 50, what: 'the first tasks' });
    await change();
    const during = (await rig.asked()) - before;
    note(`${what} was over when ${during} of ${SAMPLES} tasks had asked the model`);
    expect(await running.catch(rig.explained)).toMatchObject({ problems: 1, samples: SAMPLES, verdicts: { AC: SAMPLES } });
    expect((await rig.asked()) - before).toBe(SAMPLES);
    expect(during).toBeLessThan(SAMPLES);
    expect(await image()).not.toBe(from);
    expect(JSON.parse(await rig.cli('consolidate', '--json'))).toMatchObject({ state: expect.stringContaining('DONE') as string });
  });
});
