interface ChartProps {
  readonly title: string;
  readonly values: readonly number[];
  /** The label of a value, by its index. */
  readonly labelOf: (at: number) => string;
  readonly text: (value: number) => string;
  /** The top of the scale; default: a little more than the largest value. */
  readonly top?: number;
}

const [WIDTH, HEIGHT, LEFT, BOTTOM, PAD] = [720, 190, 64, 24, 14];

export function Chart({ title, values, labelOf, text, top }: ChartProps) {
  const largest = top ?? Math.max(...values, 0) * 1.1;
  const scale = largest > 0 ? largest : 1;
  const last = values.length - 1;
  const x = (at: number) => LEFT + (at / Math.max(last, 1)) * (WIDTH - LEFT - PAD);
  const y = (value: number) => HEIGHT - BOTTOM - (value / scale) * (HEIGHT - BOTTOM - PAD);
  const path = values.map((value, at) => `${at === 0 ? 'M' : 'L'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('');
  const said = values.map((value, at) => `${labelOf(at)}: ${text(value)}`);
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <svg className="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={title}>
        {[0, scale / 2, scale].map((value) => (
          <g key={value}>
            <line className="axis" x1={LEFT} x2={WIDTH - PAD} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 6} y={y(value) + 4} textAnchor="end">
              {text(value)}
            </text>
          </g>
        ))}
        <path className="one" d={path} />
        {values.map((value, at) => (
          <circle key={at} className="one" cx={x(at)} cy={y(value)} r={3}>
            <title>{said[at]}</title>
          </circle>
        ))}
        <text x={LEFT} y={HEIGHT - 6}>
          {labelOf(0)}
        </text>
        <text x={WIDTH - PAD} y={HEIGHT - 6} textAnchor="end">
          {labelOf(last)}
        </text>
      </svg>
      <details>
        <summary>As numbers</summary>
        <p>{said.join(' · ')}</p>
      </details>
    </figure>
  );
}

interface IntervalProps {
  readonly estimate: number;
  readonly low: number;
  readonly high: number;
  readonly text: (value: number) => string;
}

export function Interval({ estimate, low, high, text }: IntervalProps) {
  const reach = Math.max(Math.abs(low), Math.abs(high), 1e-9);
  const x = (value: number) => 60 + (value / reach) * 55;
  const said = `${text(estimate)} (${text(low)} to ${text(high)})`;
  return (
    <span>
      <svg className="interval" viewBox="0 0 120 12" width={120} height={12} role="img" aria-label={said}>
        <line className="axis" x1={60} x2={60} y1={0} y2={12} />
        <line x1={x(low)} x2={x(high)} y1={6} y2={6} />
        <circle cx={x(estimate)} cy={6} r={3} />
      </svg>{' '}
      {said}
    </span>
  );
}
