import { type AnchorHTMLAttributes, type MouseEvent, useCallback, useSyncExternalStore } from 'react';

export interface PageProps {
  /** The part of the address after the page's own path, such as a task's id. */
  readonly name: string;
}

/** The path under which the gateway serves the console. */
const BASE = '/console';
const MOVED = 'etude-moved';

function subscribe(listener: () => void): () => void {
  addEventListener('popstate', listener);
  addEventListener(MOVED, listener);
  return () => {
    removeEventListener('popstate', listener);
    removeEventListener(MOVED, listener);
  };
}

/** Goes to a page of the console, such as "/tasks?state=running". */
export function go(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', `${BASE}${to}`);
  else history.pushState(null, '', `${BASE}${to}`);
  dispatchEvent(new Event(MOVED));
  if (!replace) scrollTo(0, 0);
}

export function useLocation(): { readonly path: string; readonly query: URLSearchParams } {
  const whole = useSyncExternalStore(subscribe, () => `${location.pathname}${location.search}`);
  const [path = '', search = ''] = whole.split('?');
  return { path: path.slice(BASE.length) || '/', query: new URLSearchParams(search) };
}

/** One value of the query. Setting it goes back to the first page of a list. */
export function useQueryValue(name: string): readonly [string, (value: string) => void] {
  const { query } = useLocation();
  const set = useCallback(
    (value: string) => go(hrefWith({ [name]: value, ...(name === 'page' ? {} : { page: '' }) }), { replace: name !== 'page' }),
    [name],
  );
  return [query.get(name) ?? '', set];
}

export function useQueryValues<Name extends string>(...names: readonly Name[]): Readonly<Record<Name, string>> {
  const { query } = useLocation();
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])) as Record<Name, string>;
}

export function hrefWith(values: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return `${location.pathname.slice(BASE.length)}${text && `?${text}`}`;
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { readonly to: string };

export function Link({ to, onClick, ...rest }: LinkProps) {
  const open = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return <a href={`${BASE}${to}`} onClick={open} {...rest} />;
}
