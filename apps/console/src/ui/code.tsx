import { classHighlighter, highlightCode } from '@lezer/highlight';
import { parser } from '@lezer/python';
import type { ReactNode } from 'react';

/** Longer code is shown without colours, because highlighting it would be slow. */
const HIGHLIGHTED_MAX = 100_000;

function highlighted(code: string): ReactNode[] {
  const parts: ReactNode[] = [];
  const add = (text: string, classes: string) =>
    parts.push(
      classes === '' ? (
        text
      ) : (
        <span key={parts.length} className={classes}>
          {text}
        </span>
      ),
    );
  highlightCode(code, parser.parse(code), classHighlighter, add, () => parts.push('\n'));
  return parts;
}

/** Python code with coloured syntax. It is rendered as text, never as HTML. */
export function Code({ code, label = 'Code' }: { readonly code: string; readonly label?: string }) {
  return (
    <pre className="code" tabIndex={0} aria-label={label} role="region">
      <code>{code.length > HIGHLIGHTED_MAX ? code : highlighted(code)}</code>
    </pre>
  );
}

export function Output({ text, label = 'Output', tone }: { readonly text: string; readonly label?: string; readonly tone?: 'bad' }) {
  return (
    <pre className={tone === 'bad' ? 'output bad' : 'output'} tabIndex={0} aria-label={label} role="region">
      {text}
    </pre>
  );
}

interface Row {
  readonly left: string | null;
  readonly right: string | null;
  readonly kind: 'same' | 'changed' | 'hunk';
}

/** Rows of a unified diff, with removed lines beside added lines. */
function rowsOf(diff: string): Row[] {
  const rows: Row[] = [];
  let [removed, added]: [string[], string[]] = [[], []];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1)
      rows.push({ left: removed[at] ?? null, right: added[at] ?? null, kind: 'changed' });
    [removed, added] = [[], []];
  };
  for (const line of diff.split('\n')) {
    if (/^(---|\+\+\+|Index:|===|\\)/.test(line)) continue;
    if (line.startsWith('-')) removed.push(line.slice(1));
    else if (line.startsWith('+')) added.push(line.slice(1));
    else {
      flush();
      if (line.startsWith('@@')) rows.push({ left: line, right: line, kind: 'hunk' });
      else if (line !== '') rows.push({ left: line.slice(1), right: line.slice(1), kind: 'same' });
    }
  }
  flush();
  return rows;
}

const classOf = (row: Row, side: 'left' | 'right') =>
  row.kind !== 'changed' ? row.kind : row[side] === null ? 'none' : side === 'left' ? 'removed' : 'added';

/** A unified diff side by side. The column headings tell screen readers which side a line is on. */
export function Diff({ diff, from, to }: { readonly diff: string; readonly from: string; readonly to: string }) {
  if (diff.trim() === '') return <p className="quiet">Nothing changed here.</p>;
  return (
    <div className="scrolled" tabIndex={0} role="region" aria-label={`Changes from ${from} to ${to}`}>
      <table className="diff">
        <thead>
          <tr>
            <th scope="col">{from}</th>
            <th scope="col">{to}</th>
          </tr>
        </thead>
        <tbody>
          {rowsOf(diff).map((row, at) => (
            <tr key={at}>
              <td className={classOf(row, 'left')}>
                <pre>{row.left}</pre>
              </td>
              <td className={classOf(row, 'right')}>
                <pre>{row.right}</pre>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
