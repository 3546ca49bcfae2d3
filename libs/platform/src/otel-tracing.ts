import { AsyncLocalStorage } from 'node:async_hooks';
import { hostname } from 'node:os';
import { errorCode, isAbort } from '@etude/contracts/errors';
import type { Span, SpanStart, SpanValues } from '@etude/contracts/tracing';
import { type Attributes, type Context, ROOT_CONTEXT, type Span as OtelSpan, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { ProcessTracing, TracingConfig } from './tracing.js';

/** How long a closing process waits for the collector. */
const FLUSH_MS = 1_500;
/** The most characters of one content, such as a prompt. */
const CONTENT_MAX = 8_192;

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, consumer: SpanKind.CONSUMER };
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/**
 * Spans of OpenTelemetry, sent to a collector over OTLP (HTTP, protobuf). Address and headers come from the standard variables
 * `OTEL_EXPORTER_OTLP_*`. The current span is kept by Node.js, without OpenTelemetry's globals.
 */
export class OtelTracing implements ProcessTracing {
  readonly #current = new AsyncLocalStorage<OtelSpan>();
  readonly #provider: TracerProvider;
  readonly #tracer;

  constructor(
    service: string,
    private readonly config: TracingConfig,
    warn: (reason: string) => void,
    exporter: SpanExporter = new OTLPTraceExporter(),
  ) {
    const named = resourceFromAttributes({ 'service.name': `etude-${service}`, 'service.instance.id': `${hostname()}-${process.pid}` });
    this.#provider = new TracerProvider({
      resource: named.merge(detectResources({ detectors: [envDetector] })),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(config.ETUDE_TRACE_RATIO) }),
      spanProcessors: [new BatchSpanProcessor({ exporter: reporting(exporter, warn) })],
    });
    this.#tracer = this.#provider.getTracer('etude');
  }

  get current(): string | undefined {
    const context = this.#current.getStore()?.spanContext();
    return context && `00-${context.traceId}-${context.spanId}-0${context.traceFlags & 1}`;
  }

  async span<T>(name: string, { kind, parent, values = {} }: SpanStart, work: (span: Span) => Promise<T>): Promise<T> {
    const attributes = values as Attributes;
    const span = this.#tracer.startSpan(name, { kind: kind ? KINDS[kind] : SpanKind.INTERNAL, attributes }, this.#contextOf(parent));
    try {
      return await this.#current.run(span, () => work(this.#open(span)));
    } catch (error) {
      // Only the error's code is recorded, because a message may quote a prompt.
      if (!isInterruption(error)) span.setAttribute('error.type', errorCode(error)).setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  }

  async close(): Promise<void> {
    const late = new Promise<void>((resolve) => setTimeout(resolve, FLUSH_MS).unref());
    await Promise.race([this.#provider.shutdown().catch(() => undefined), late]);
  }

  #contextOf(parent: string | undefined): Context {
    const [, traceId, spanId, flags] = TRACEPARENT.exec(parent ?? '') ?? [];
    if (traceId && spanId && flags)
      return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true });
    const current = this.#current.getStore();
    return current ? trace.setSpan(ROOT_CONTEXT, current) : ROOT_CONTEXT;
  }

  #open(span: OtelSpan): Span {
    return {
      set: (values) => void span.setAttributes(values),
      setContent: (values) => {
        if (this.config.ETUDE_TRACE_CONTENT && span.isRecording()) span.setAttributes(cut(values()));
      },
    };
  }
}

/** Whether work was stopped on purpose: it continues later, or is no longer wanted. */
const isInterruption = (error: unknown) => isAbort(error) || (error as { isNoFailure?: unknown } | null)?.isNoFailure === true;

const cut = (values: SpanValues): Attributes =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value).slice(0, CONTENT_MAX)]));

/** Wraps an exporter, so that only the first failure after a success is reported. */
function reporting(exporter: SpanExporter, warn: (reason: string) => void): SpanExporter {
  let failed = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.error && !failed) warn(result.error.message);
        failed = result.error !== undefined;
        done(result);
      }),
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  };
}
