import { Counter, collectDefaultMetrics, Gauge, Histogram, register } from 'prom-client';

interface MetricOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
}

/** Upper bounds of the buckets in seconds, from a fast call to a long rollout. */
const SECONDS = [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1_800];

/** A counter. Name it `etude_<area>_<thing>_total`. Asking again for a name returns the same metric. */
export function counter<L extends string>({ name, help, labels = [] }: MetricOptions<L>): Counter<L> {
  return (register.getSingleMetric(name) as Counter<L> | undefined) ?? new Counter({ name, help, labelNames: [...labels] });
}

/** A gauge whose value `collect` returns at each scrape. Asking again for a name replaces the metric. */
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

/** A histogram of durations in seconds. Name it `etude_<area>_<thing>_seconds`. */
export function histogram<L extends string>({ name, help, labels = [] }: MetricOptions<L>): Histogram<L> {
  return (
    (register.getSingleMetric(name) as Histogram<L> | undefined) ?? new Histogram({ name, help, labelNames: [...labels], buckets: SECONDS })
  );
}

let started = false;

/** Starts metrics of the process. The event loop is sampled once a second, since more often would cost idle CPU. */
export function startProcessMetrics(): void {
  if (started) return;
  started = true;
  collectDefaultMetrics({ eventLoopMonitoringPrecision: 1_000 });
}

export const metricsContentType = () => register.contentType;
export const renderMetrics = () => register.metrics();
