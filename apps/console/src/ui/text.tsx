import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type { FormEvent, ReactNode } from 'react';

export const counted = (count: number | bigint, one: string, many = `${one}s`) =>
  `${count.toLocaleString('en')} ${Number(count) === 1 ? one : many}`;

export const told = (value: unknown) =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);

export const percent = (share: number) => `${Math.round(share * 100)}%`;

export const firstLine = (text: string, most = 140) => {
  const [first = ''] = text.trim().split('\n', 1);
  return first.length > most ? `${first.slice(0, most - 1)}…` : first;
};

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}

const shown = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export function When({ at }: { readonly at: Timestamp | undefined }) {
  if (at === undefined) return null;
  const date = timestampDate(at);
  return <time dateTime={date.toISOString()}>{shown.format(date)}</time>;
}

export type Tone = 'good' | 'bad' | 'busy' | 'warn' | 'plain';

export const Badge = ({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ReactNode }) => (
  <span className={`badge ${tone}`}>{children}</span>
);

/** Marks an answer that came from a script. */
export const Scripted = ({ when = true }: { readonly when?: boolean }) => (when ? <Badge tone="warn">scripted</Badge> : null);

const LONG_CHARS = 80;

export function Details({ rows }: { readonly rows: ReadonlyArray<readonly [name: string, value: ReactNode]> }) {
  const shownRows = rows.filter(([, value]) => value !== '' && value !== undefined && value !== null && value !== false);
  return (
    <dl className="details">
      {shownRows.map(([name, value]) => (
        <div key={name} className={typeof value === 'string' && value.length > LONG_CHARS ? 'long' : undefined}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Handles a form's submit event with `act`, so that the browser loads no page. */
export const submitting = (act: () => void) => (event: FormEvent) => {
  event.preventDefault();
  act();
};

interface SectionProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly aside?: ReactNode;
}

export const Section = ({ title, children, aside }: SectionProps) => (
  <section>
    <header className="section">
      <h2>{title}</h2>
      {aside}
    </header>
    {children}
  </section>
);
