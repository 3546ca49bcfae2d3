import { EtudeError } from '@etude/contracts/errors';
import { expect, it } from 'vitest';
import { boundedLabel, countModelSpend, renderMetrics } from './metrics.js';
import { startTracing } from './tracing.js';

const OFF = { ETUDE_TRACES: false, ETUDE_TRACE_CONTENT: false, ETUDE_TRACE_RATIO: 1 };
const untraced = () => startTracing('test', OFF, { warn: () => undefined });

it('bounds a label whose values come from callers', () => {
  const label = boundedLabel(2);
  expect(['a', 'b', 'c', 'a', 'd'].map(label)).toEqual(['a', 'b', 'other', 'a', 'other']);
});

it('counts tokens and money of model calls by tenant and agent', async () => {
  for (const costUsd of [0.25, 0.5]) countModelSpend({ tenant: 'acme', agent: 'solver' }, { inputTokens: 10, outputTokens: 2, costUsd });
  const metrics = await renderMetrics();
  expect(metrics).toContain('etude_model_tokens_total{tenant="acme",agent="solver",direction="input"} 20');
  expect(metrics).toContain('etude_model_usd_total{tenant="acme",agent="solver"} 0.75');
});

it('measures work by its kind and outcome, also where nothing is traced', async () => {
  const tracing = await untraced();
  await tracing.span('chat big-model', {}, async () => 1);
  const failure = tracing.span('chat small-model', {}, () => Promise.reject(new EtudeError('MODEL_UNAVAILABLE', 'away')));
  await expect(failure).rejects.toThrow('away');
  await tracing.span('etude.v1.Tasks/GetTask', { kind: 'server' }, async () => 1);
  const metrics = await renderMetrics();
  expect(metrics).toContain('etude_work_seconds_count{work="chat",outcome="ok"} 1');
  expect(metrics).toContain('etude_work_seconds_count{work="chat",outcome="MODEL_UNAVAILABLE"} 1');
  expect(metrics).not.toContain('work="etude.v1');
});
