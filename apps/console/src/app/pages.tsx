import { type ComponentType, lazy, Suspense } from 'react';
import { Empty, Loading } from '../ui/states.js';
import { Frame } from './frame.js';
import { go, type PageProps, useLocation } from '../ui/router.js';

type Page = ComponentType<PageProps>;

/** Each page is loaded when it is opened. */
const PAGES: ReadonlyArray<readonly [pattern: RegExp, page: Page]> = [
  [/^\/tasks$/, lazy(async () => ({ default: (await import('../tasks/task-list.js')).TaskListPage }))],
  [/^\/tasks\/([^/]+)$/, lazy(async () => ({ default: (await import('../tasks/task-page.js')).TaskPage }))],
];

export function Pages({ onSignOut }: { readonly onSignOut: () => void }) {
  const { path } = useLocation();
  if (path === '/') queueMicrotask(() => go('/tasks', { replace: true }));
  const found = PAGES.flatMap(([pattern, page]) => {
    const match = pattern.exec(path);
    return match ? [{ Page: page, name: decodeURIComponent(match[1] ?? '') }] : [];
  })[0];
  return (
    <Frame path={path} onSignOut={onSignOut}>
      <Suspense fallback={<Loading />}>
        {found ? <found.Page key={path} name={found.name} /> : path !== '/' && <Empty>There is no such page. Choose one above.</Empty>}
      </Suspense>
    </Frame>
  );
}
