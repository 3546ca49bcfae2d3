import { type Tracing, traceIdOf, UNTRACED } from '@etude/contracts/tracing';
import type { BaseConfig } from './config.js';

/** Tracing of one process. */
export interface ProcessTracing extends Tracing {
  /** Sends the spans that ended, for at most `FLUSH_MS`. */
  close(): Promise<void>;
}

export type TracingConfig = Pick<BaseConfig, 'ETUDE_TRACES' | 'ETUDE_TRACE_CONTENT' | 'ETUDE_TRACE_RATIO'>;

let tracing: ProcessTracing = { ...UNTRACED, close: async () => undefined };

interface Log {
  warn(details: object, message: string): void;
}

/** Starts the tracing of this process. OpenTelemetry is loaded only if traces are on. A collector that fails is logged once. */
export async function startTracing(service: string, config: TracingConfig, logger: Log): Promise<ProcessTracing> {
  if (!config.ETUDE_TRACES) return tracing;
  const { OtelTracing } = await import('./otel-tracing.js');
  const warn = (reason: string) => logger.warn({ reason }, 'The collector takes no traces. Spans are dropped until it does');
  return (tracing = new OtelTracing(service, config, warn));
}

/** The trace of the line that is being logged. */
export const loggedTrace = (): { traceId?: string } => {
  const traceId = traceIdOf(tracing.current);
  return traceId === undefined ? {} : { traceId };
};
