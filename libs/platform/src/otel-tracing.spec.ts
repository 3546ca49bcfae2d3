import { EtudeError } from '@etude/contracts/errors';
import { SpanStatusCode } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { expect, it, vi } from 'vitest';
import { loadConfig, baseConfig } from './config.js';
import { OtelTracing } from './otel-tracing.js';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** Runs `work`, and returns the spans that were sent by the end. */
async function sent(work: (tracing: OtelTracing) => Promise<unknown>, env = {}): Promise<ReadableSpan[]> {
  const spans: ReadableSpan[] = [];
  const exporter = {
    export: (ended: ReadableSpan[], done: (result: { code: number }) => void) => (spans.push(...ended), done({ code: 0 })),
    shutdown: async () => undefined,
  };
  const tracing = new OtelTracing('test', loadConfig(baseConfig, { ETUDE_TRACES: 'true', ...env }), () => undefined, exporter);
  await work(tracing);
  await tracing.close();
  return spans;
}

it('continues the trace of a traceparent and hands it on', async () => {
  let handedOn: string | undefined;
  const inner = (tracing: OtelTracing) => tracing.span('inner', {}, async () => (handedOn = tracing.current));
  const spans = await sent((tracing) => tracing.span('outer', { kind: 'server', parent: PARENT }, () => inner(tracing)));
  expect(spans.map(({ name, parentSpanContext }) => [name, parentSpanContext?.spanId])).toEqual([
    ['inner', spans[1]?.spanContext().spanId],
    ['outer', 'b7ad6b7169203331'],
  ]);
  expect(handedOn).toBe(`00-0af7651916cd43dd8448eb211c80319c-${spans[0]?.spanContext().spanId}-01`);
});

it.each(['', 'x', PARENT.replace('0af7', 'zzzz'), `${PARENT}-more`])(
  'starts a trace of its own at the traceparent "%s"',
  async (parent) => {
    const [span] = await sent((tracing) => tracing.span('one', { parent }, async () => undefined));
    expect(span).toMatchObject({ name: 'one', parentSpanContext: undefined });
  },
);

it('keeps nothing of a trace that its caller does not record', async () => {
  expect(await sent((tracing) => tracing.span('one', { parent: PARENT.replace(/01$/, '00') }, async () => undefined))).toEqual([]);
});

it.each([
  ['tells an error by its code alone', new EtudeError('MODEL_REFUSED', 'it refused "my secret"'), 'MODEL_REFUSED', SpanStatusCode.ERROR],
  ['counts an interruption as no error', Object.assign(new Error('stopped'), { name: 'AbortError' }), undefined, SpanStatusCode.UNSET],
])('%s', async (_fact, error, type, code) => {
  const [span] = await sent((tracing) => tracing.span('one', {}, () => Promise.reject(error)).catch(() => undefined));
  expect(span).toMatchObject({ status: { code }, events: [] });
  expect(span?.attributes['error.type']).toBe(type);
  expect(JSON.stringify([span?.attributes, span?.status])).not.toContain('secret');
});

it.each([
  ['leaves content out', {}, {}],
  ['keeps content that was asked for, cut', { ETUDE_TRACE_CONTENT: 'true' }, { prompt: 'x'.repeat(8_192) }],
])('%s', async (_fact, env, attributes) => {
  const prompt = 'x'.repeat(10_000);
  const [span] = await sent((tracing) => tracing.span('one', {}, async (open) => open.setContent(() => ({ prompt }))), env);
  expect(span?.attributes).toEqual(attributes);
});

it('drops spans rather than waits for a collector that is stuck', async () => {
  vi.useFakeTimers();
  let given = 0;
  const exporter = { export: (spans: ReadableSpan[]) => void (given += spans.length), shutdown: async () => undefined };
  const tracing = new OtelTracing('test', loadConfig(baseConfig, {}), () => undefined, exporter);
  for (let n = 0; n < 5_000; n += 1) await tracing.span('one', {}, async () => undefined);
  const closed = tracing.close();
  await vi.advanceTimersByTimeAsync(1_500);
  await closed;
  vi.useRealTimers();
  // One batch that is being sent, and the queue.
  expect(given).toBe(512 + 2_048);
});

it('tells of a collector that fails once', async () => {
  const told: string[] = [];
  const exporter = {
    export: (_spans: unknown, done: (result: { code: number; error: Error }) => void) => done({ code: 1, error: new Error('refused') }),
    shutdown: async () => undefined,
  };
  const tracing = new OtelTracing('test', loadConfig(baseConfig, {}), (reason) => told.push(reason), exporter);
  for (let n = 0; n < 1_200; n += 1) await tracing.span('one', {}, async () => undefined);
  await tracing.close();
  expect(told).toEqual(['refused']);
});
