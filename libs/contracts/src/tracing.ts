/** Values of a span, by name. Undefined values are left out. */
export type SpanValues = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface Span {
  set(values: SpanValues): void;
  /** Values that hold prompts, code or answers. They are made only if the operator asked for them, and long ones are cut. */
  setContent(values: () => SpanValues): void;
}

export interface SpanStart {
  /** Default: work within this process. */
  readonly kind?: 'server' | 'client' | 'consumer';
  /** W3C `traceparent` of the span that caused this span. Absent or invalid: the current span. */
  readonly parent?: string;
  readonly values?: SpanValues;
}

/** Spans of distributed traces. During its work, a span is the current one. Not part of this port: sampling, export, metrics. */
export interface Tracing {
  /** W3C `traceparent` of the current span; undefined outside of spans. Pass it to work that goes on in another process. */
  readonly current: string | undefined;
  /** Runs `work` as a span. The span notes the code of an error that `work` throws. */
  span<T>(name: string, start: SpanStart, work: (span: Span) => Promise<T>): Promise<T>;
}

const NOTHING: Span = { set: () => undefined, setContent: () => undefined };

export const UNTRACED: Tracing = { current: undefined, span: (_name, _start, work) => work(NOTHING) };

export const traceIdOf = (traceparent: string | undefined): string | undefined => traceparent?.split('-')[1];
