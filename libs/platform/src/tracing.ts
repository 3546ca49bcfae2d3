import { errorCode } from '@etude/contracts/errors';
import { type Tracing, traceIdOf, UNTRACED } from '@etude/contracts/tracing';
import type { BaseConfig } from './config.js';
import { boundedLabel, histogram } from './metrics.js';

export interface ProcessTracing extends Tracing {
  /** Sends the spans that ended, for at most `FLUSH_MS`. */
  close(): Promise<void>;
}

export type TracingConfig = Pick<BaseConfig, 'ETUDE_TRACES' | 'ETUDE_TRACE_CONTENT' | 'ETUDE_TRACE_RATIO'>;

const seconds = histogram({
  name: 'etude_work_seconds',
  help: 'How long work took, by kind: jobs, model calls, tools, steps, sandboxes; `outcome` is ok or the code of its error',
  labels: ['work', 'outcome'],
});
const workLabel = boundedLabel(200);

/** The kind of a span's work. Names of models and agents are left out. */
const workOf = (span: string) => workLabel(span.replace(/^(chat|invoke_agent) .*/, '$1'));

/** Measures the time of each span, even if traces are off. Spans of gateway calls are left out, because they have metrics of their own. */
function measured(inner: ProcessTracing): ProcessTracing {
  return {
    get current() {
      return inner.current;
    },
    close: () => inner.close(),
    async span(name, start, work) {
      if (start.kind === 'server') return inner.span(name, start, work);
      const stop = seconds.startTimer({ work: workOf(name) });
      try {
        const done = await inner.span(name, start, work);
        stop({ outcome: 'ok' });
        return done;
      } catch (error) {
        stop({ outcome: errorCode(error) });
        throw error;
      }
    },
  };
}

let tracing: ProcessTracing = measured({ ...UNTRACED, close: async () => undefined });

interface Log {
  warn(details: object, message: string): void;
}

/** Starts the tracing of this process. OpenTelemetry is loaded only if traces are on. A collector that fails is logged once. */
export async function startTracing(service: string, config: TracingConfig, logger: Log): Promise<ProcessTracing> {
  if (!config.ETUDE_TRACES) return tracing;
  const { OtelTracing } = await import('./otel-tracing.js');
  const warn = (reason: string) => logger.warn({ reason }, 'The collector takes no traces. Meanwhile spans are dropped');
  return (tracing = measured(new OtelTracing(service, config, warn)));
}

export const loggedTrace = (): { traceId?: string } => {
  const traceId = traceIdOf(tracing.current);
  return traceId === undefined ? {} : { traceId };
};
