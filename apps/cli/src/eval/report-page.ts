import { SCRIPTED } from '../show.js';
import { type Chart, escaped, svgOf } from './chart.js';
import { KINDS } from './families.js';
import { ARMS, figureCells, type Figures, type Measure, MEASURES, type Row, valueText } from './figures.js';

const NAMES: Readonly<Record<Row['kind'], string>> = {
  all: 'All tasks',
  house_rule: 'House rules',
  procedure: 'Procedures',
  distractor: 'Distractors',
};
const ABOUT: Readonly<Record<Row['kind'], string>> = {
  all: 'With memory, the calls and tokens of learning are counted, and those of the consolidation after each round.',
  house_rule: 'The rule is told in no task, only in the references that a reflection sees.',
  procedure: 'One function under another name in every round.',
  distractor: 'Tasks with the words of another family and a rule of their own.',
};

/** Main curve: the tasks of every kind. */
export function reportSvg(figures: Figures): string {
  const charts = MEASURES.slice(0, 3).map((measure) => chartOf(figures, 'all', measure));
  return svgOf(charts, charts.length, noteOf(figures));
}

const noteOf = ({ runs, scripted }: Figures) =>
  `${runs.join(', ')}${scripted ? ` ${SCRIPTED}: the answers came from a script, not from a model` : ''}`;

/** One page that needs nothing from outside and no script. */
export function reportPage(figures: Figures): string {
  const kinds = (['all', ...KINDS] as const).filter((kind) => figures.rows.some((row) => row.kind === kind));
  const sections = kinds.map((kind) => {
    const charts = MEASURES.filter((measure) => isDrawn(figures, kind, measure)).map((measure) => chartOf(figures, kind, measure));
    return `<h2>${NAMES[kind]}</h2>\n<p>${ABOUT[kind]}</p>\n${svgOf(charts, charts.length)}`;
  });
  const [head = [], ...rows] = figureCells(figures);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Learning curves</title>
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem;color:#1f2328;background:#fff}table{border-collapse:collapse}
td,th{padding:.2rem .8rem;border-bottom:1px solid #d0d7de;text-align:right}svg{max-width:100%;height:auto}</style></head>
<body><h1>Learning curves</h1>
<p>${escaped(noteOf(figures))}</p>
${sections.join('\n')}
<h2>Figures</h2>
<table>${lineOf(head, 'th')}
${rows.map((cells) => lineOf(cells, 'td')).join('\n')}</table>
</body></html>
`;
}

const lineOf = (cells: readonly string[], tag: string) => `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;

/** Answers by skills are drawn for procedures only, and money only where a price is known. */
function isDrawn({ rows }: Figures, kind: Row['kind'], { title, unit }: Measure): boolean {
  if (title === 'Answered by a skill') return kind === 'procedure';
  return unit !== 'money' || rows.some(({ costUsd }) => costUsd > 0);
}

function chartOf({ rows }: Figures, kind: Row['kind'], { title, unit, of }: Measure): Chart {
  const rounds = [...new Set(rows.map(({ round }) => round))];
  const valueIn = (round: number, arm: string) => {
    const row = rows.find((one) => one.round === round && one.arm === arm && one.kind === kind);
    return row === undefined ? null : of(row);
  };
  return {
    title,
    rounds: rounds.map((round, at) => (at === 0 ? `Round ${round}` : String(round))),
    series: ARMS.map((arm) => ({ label: `${arm} memory`, values: rounds.map((round) => valueIn(round, arm)) })),
    text: (value) => valueText(unit, value),
    ...(unit === 'percent' ? { max: 100 } : {}),
  };
}
