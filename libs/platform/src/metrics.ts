import { Counter, collectDefaultMetrics, Gauge, Histogram, register } from 'prom-client';

interface MetricOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
}

/** Upper bounds in seconds, from a fast call to a long rollout. */
const SECONDS = [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1_800];

/** Counts up. Name it `etude_<area>_<thing>_total`. Asking twice for a name gives the same metric. */
export function counter<L extends string>({ name, help, labels = [] }: MetricOptions<L>): Counter<L> {
  return (register.getSingleMetric(name) as Counter<L> | undefined) ?? new Counter({ name, help, labelNames: [...labels] });
}

/** A value now; `collect` is called at each scrape and returns it. Asking twice for a name leaves the later one. */
export function gauge(options: MetricOptions<never> & { collect: () => number | Promise<number> }): Gauge {
  register.removeSingleMetric(options.name);
  return new Gauge({
    name: options.name,
    help: options.help,
    async collect() {
      this.set(await options.collect());
    },
  });
}

/** Durations in seconds. Name it `etude_<area>_<thing>_seconds`. */
export function histogram<L extends string>({ name, help, labels = [] }: MetricOptions<L>): Histogram<L> {
  return (
    (register.getSingleMetric(name) as Histogram<L> | undefined) ?? new Histogram({ name, help, labelNames: [...labels], buckets: SECONDS })
  );
}

let started = false;

/** Metrics of the process itself. Samples the event loop once a second, since more often costs idle CPU. */
export function startProcessMetrics(): void {
  if (started) return;
  started = true;
  collectDefaultMetrics({ eventLoopMonitoringPrecision: 1_000 });
}

export const metricsContentType = () => register.contentType;
export const renderMetrics = () => register.metrics();
