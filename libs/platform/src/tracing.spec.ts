import { expect, it, vi } from 'vitest';
import { baseConfig, loadConfig } from './config.js';
import { startTracing } from './tracing.js';

const loaded = vi.fn<() => void>();
vi.mock('./otel-tracing.js', () => {
  loaded();
  return { OtelTracing: class {} };
});

it('loads OpenTelemetry only where traces are on', async () => {
  const log = { warn: () => undefined };
  const off = await startTracing('test', loadConfig(baseConfig, {}), log);
  expect([await off.span('one', {}, async () => 'done'), off.current]).toEqual(['done', undefined]);
  expect(loaded).not.toHaveBeenCalled();
  await startTracing('test', loadConfig(baseConfig, { ETUDE_TRACES: 'true' }), log);
  expect(loaded).toHaveBeenCalledOnce();
});
