import { Link } from './router.js';

export interface Node {
  readonly title: string;
  /** Path of the record's page; '' if the record has no page. */
  readonly to: string;
}

interface GraphProps {
  readonly label: string;
  readonly from: readonly Node[];
  readonly centre: string;
  readonly onto: readonly Node[];
}

const [ROW, WIDE, BOX] = [30, 760, 210];
const SHOWN_MAX = 8;

const cut = (title: string) => (title.length > 28 ? `${title.slice(0, 27)}…` : title);

/** A record in the middle, its sources on the left, and what is based on it on the right. Screen readers get a list of the same records. */
export function Graph({ label, from, centre, onto }: GraphProps) {
  const [left, right] = [from.slice(0, SHOWN_MAX), onto.slice(0, SHOWN_MAX)];
  const height = Math.max(left.length, right.length, 1) * ROW + 10;
  const middle = height / 2;
  const y = (at: number, count: number) => middle + (at - (count - 1) / 2) * ROW;
  const node = (title: string, x: number, at: number) => (
    <g key={`${x} ${at} ${title}`}>
      <rect x={x} y={at - 11} width={BOX} height={22} rx={4} />
      <text x={x + 8} y={at + 4}>
        {cut(title)}
      </text>
    </g>
  );
  return (
    <figure>
      <svg className="graph" viewBox={`0 0 ${WIDE} ${height}`} role="img" aria-label={label}>
        {left.map((_, at) => (
          <line key={at} x1={BOX} y1={y(at, left.length)} x2={(WIDE - BOX) / 2} y2={middle} />
        ))}
        {right.map((_, at) => (
          <line key={at} x1={(WIDE + BOX) / 2} y1={middle} x2={WIDE - BOX} y2={y(at, right.length)} />
        ))}
        {left.map(({ title }, at) => node(title, 0, y(at, left.length)))}
        {node(centre, (WIDE - BOX) / 2, middle)}
        {right.map(({ title }, at) => node(title, WIDE - BOX, y(at, right.length)))}
      </svg>
      <figcaption>
        Based on: <Nodes nodes={from} />. Based on it: <Nodes nodes={onto} />.
      </figcaption>
    </figure>
  );
}

const Nodes = ({ nodes }: { readonly nodes: readonly Node[] }) =>
  nodes.length === 0
    ? 'nothing known'
    : nodes.map(({ title, to }, at) => (
        <span key={title}>
          {at > 0 && ', '}
          {to === '' ? title : <Link to={to}>{title}</Link>}
        </span>
      ));
