import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react';
import type { Read } from '../api/client.js';
import { hrefWith, Link, useQueryValue } from './router.js';
import { Loaded } from './states.js';

export interface Column<T> {
  readonly title: string;
  readonly cell: (item: T) => ReactNode;
  /** Whether the column has numbers, which are aligned to the right. */
  readonly number?: boolean;
  /** Whether the column has longer text, which gets a wider column. */
  readonly prose?: boolean;
}

interface ListProps<T> {
  readonly label: string;
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  readonly columns: ReadonlyArray<Column<T>>;
  readonly empty: ReactNode;
  readonly nextPage?: string;
}

/** A table whose rows begin with links. The keys j and k move between rows, Enter opens a row. */
export function List<T>({ label, items, keyOf, columns, empty, nextPage = '' }: ListProps<T>) {
  const [page] = useQueryValue('page');
  return (
    <>
      {items.length === 0 ? (
        <div className="note quiet">{empty}</div>
      ) : (
        <div className="scrolled" tabIndex={0} role="region" aria-label={label}>
          <table data-list>
            <thead>
              <tr>
                {columns.map(({ title, number }) => (
                  <th key={title} scope="col" className={number ? 'number' : undefined}>
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {items.map((item) => (
                <tr key={keyOf(item)}>
                  {columns.map(({ title, cell, number, prose }) => (
                    <td key={title} className={number ? 'number' : prose ? 'prose' : undefined}>
                      {cell(item)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {(page !== '' || nextPage !== '') && (
        <nav className="pager" aria-label={`Pages of ${label}`}>
          {page !== '' && <Link to={hrefWith({ page: '' })}>First page</Link>}
          {nextPage !== '' && <Link to={hrefWith({ page: nextPage })}>Next page</Link>}
        </nav>
      )}
    </>
  );
}

interface ReadListProps<Answer, T> extends Omit<ListProps<T>, 'items' | 'nextPage'> {
  readonly read: Read<Answer>;
  readonly of: (answer: Answer) => readonly T[];
}

export const ReadList = <Answer extends { readonly $typeName: string; readonly nextPageToken?: string }, T>({
  read,
  of,
  ...list
}: ReadListProps<Answer, T>) => (
  <Loaded read={read}>{(answer) => <List {...list} items={of(answer)} nextPage={answer.nextPageToken ?? ''} />}</Loaded>
);

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  readonly options: ReadonlyArray<readonly [value: string, title: string]>;
}

export function ChoiceFilter({ name, label, options }: ChoiceProps) {
  const [value, set] = useQueryValue(name);
  return (
    <label className="field">
      <span>{label}</span>
      <select value={value} onChange={({ target }) => set(target.value)}>
        {options.map(([one, title]) => (
          <option key={one} value={one}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TextFilterProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly isSearch?: boolean;
}

export function TextFilter({ name, label, hint = '', isSearch = false }: TextFilterProps) {
  const [value, set] = useQueryValue(name);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const apply = () => input.current && input.current.value.trim() !== value && set(input.current.value.trim());
  const onKeyDown = (event: KeyboardEvent) => event.key === 'Enter' && apply();
  return (
    <div className={isSearch ? 'field wide' : 'field'}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        key={value}
        ref={input}
        type="search"
        defaultValue={value}
        placeholder={hint}
        onBlur={apply}
        onKeyDown={onKeyDown}
        data-search={isSearch || undefined}
      />
    </div>
  );
}
