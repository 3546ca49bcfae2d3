import { Counter, collectDefaultMetrics, Gauge, Histogram, register } from 'prom-client';

interface MetricOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
}

/** Upper bounds of the buckets in seconds, from a fast call to a long rollout. */
const SECONDS = [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1_800];

/** A counter. Name it `etude_<area>_<thing>_total`. A second call with the same name returns the same counter. */
export function counter<L extends string>({ name, help, labels = [] }: MetricOptions<L>): Counter<L> {
  return (register.getSingleMetric(name) as Counter<L> | undefined) ?? new Counter({ name, help, labelNames: [...labels] });
}

/** A gauge with labels. `collect` returns its values at each scrape; if it fails, there are none. A second gauge of a name replaces the first. */
export function gauges<L extends string>(
  options: MetricOptions<L> & { collect: () => Promise<ReadonlyArray<{ readonly labels: Record<L, string>; readonly value: number }>> },
): Gauge<L> {
  register.removeSingleMetric(options.name);
  return new Gauge({
    name: options.name,
    help: options.help,
    labelNames: [...(options.labels ?? [])],
    async collect() {
      this.reset();
      for (const { labels, value } of await options.collect().catch(() => [])) this.set(labels, value);
    },
  });
}

export const gauge = ({ name, help, collect }: MetricOptions<never> & { collect: () => number }): Gauge =>
  gauges({ name, help, collect: async () => [{ labels: {}, value: collect() }] });

/** A histogram of durations in seconds. Name it `etude_<area>_<thing>_seconds`. */
export function histogram<L extends string>({ name, help, labels = [] }: MetricOptions<L>): Histogram<L> {
  return (
    (register.getSingleMetric(name) as Histogram<L> | undefined) ?? new Histogram({ name, help, labelNames: [...labels], buckets: SECONDS })
  );
}

/** Bounds a label whose values come from callers: the first `max` values keep their name, later ones are "other". */
export function boundedLabel(max = 50): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.size < max) known.add(value);
    return known.has(value) ? value : 'other';
  };
}

const tokens = counter({
  name: 'etude_model_tokens_total',
  help: 'Tokens of model calls, by tenant and agent. All but the first 50 tenants and agents are labelled "other"',
  labels: ['tenant', 'agent', 'direction'],
});
const usd = counter({ name: 'etude_model_usd_total', help: 'Money for model calls in US dollars', labels: ['tenant', 'agent'] });
const [tenantLabel, agentLabel] = [boundedLabel(), boundedLabel()];

export function countModelSpend(
  owner: { readonly tenant: string; readonly agent: string },
  cost: { readonly inputTokens: number; readonly outputTokens: number; readonly costUsd: number },
): void {
  const labels = { tenant: tenantLabel(owner.tenant), agent: agentLabel(owner.agent) };
  tokens.inc({ ...labels, direction: 'input' }, cost.inputTokens);
  tokens.inc({ ...labels, direction: 'output' }, cost.outputTokens);
  usd.inc(labels, cost.costUsd);
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
