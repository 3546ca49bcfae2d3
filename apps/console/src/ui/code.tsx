import { classHighlighter, highlightCode } from '@lezer/highlight';
import { parser } from '@lezer/python';
import type { ReactNode } from 'react';

/** Longer code is shown plain, since nobody reads it for its colours. */
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

/** Python with its syntax in colours. All of it is text. */
export function Code({ code, label = 'Code' }: { readonly code: string; readonly label?: string }) {
  return (
    <pre className="code" tabIndex={0} aria-label={label} role="region">
      <code>{code.length > HIGHLIGHTED_MAX ? code : highlighted(code)}</code>
    </pre>
  );
}

/** Output and other text that is no code. */
export function Output({ text, label = 'Output', tone }: { readonly text: string; readonly label?: string; readonly tone?: 'bad' }) {
  return (
    <pre className={tone === 'bad' ? 'output bad' : 'output'} tabIndex={0} aria-label={label} role="region">
      {text}
    </pre>
  );
}
