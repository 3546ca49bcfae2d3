import { type ComponentType, lazy, Suspense } from 'react';
import { go, type PageProps, useLocation } from '../ui/router.js';
import { Empty, Loading } from '../ui/states.js';
import { Frame } from './frame.js';

type Page = ComponentType<PageProps>;
type Load = () => Promise<Page>;

/** Each page is loaded when it is opened. `:name` is what the page gets. */
const LOADS: ReadonlyArray<readonly [path: string, load: Load]> = [
  ['/tasks', async () => (await import('../tasks/task-list.js')).TaskListPage],
  ['/tasks/:name', async () => (await import('../tasks/task-page.js')).TaskPage],
  ['/skills', async () => (await import('../skills/skill-list.js')).SkillListPage],
  ['/skills/:name', async () => (await import('../skills/skill-page.js')).SkillPage],
  ['/review', async () => (await import('../skills/review-page.js')).ReviewListPage],
  ['/review/:name', async () => (await import('../skills/review-page.js')).ReviewPage],
  ['/memory', async () => (await import('../memory/search-page.js')).MemorySearchPage],
  ['/memory/records', async () => (await import('../memory/record-page.js')).MemoryRecordsPage],
  ['/memory/records/:name', async () => (await import('../memory/record-page.js')).MemoryRecordPage],
  ['/memory/facts/:name', async () => (await import('../memory/record-page.js')).FactPage],
  ['/memory/documents', async () => (await import('../memory/documents-page.js')).DocumentsPage],
  ['/memory/consolidation', async () => (await import('../memory/consolidation-page.js')).ConsolidationPage],
  ['/memory/erasure', async () => (await import('../memory/erasure-page.js')).ErasurePage],
  ['/learning', async () => (await import('../learning/learning-page.js')).LearningPage],
  ['/sandboxes', async () => (await import('../sandboxes/sandbox-page.js')).SandboxListPage],
  ['/sandboxes/:name', async () => (await import('../sandboxes/sandbox-page.js')).SandboxPage],
  ['/operations', async () => (await import('../operations/operations-page.js')).OperationsPage],
  ['/operations/:name', async () => (await import('../operations/dead-letters-page.js')).DeadLettersPage],
];

const PAGES = LOADS.map(([path, load]) => {
  const pattern = new RegExp(`^${path.replace(':name', '([^/]+)')}$`);
  return { pattern, Page: lazy(async () => ({ default: await load() })) };
});

export function Pages({ onSignOut }: { readonly onSignOut: () => void }) {
  const { path } = useLocation();
  if (path === '/') queueMicrotask(() => go('/tasks', { replace: true }));
  const found = PAGES.find(({ pattern }) => pattern.test(path));
  const name = decodeURIComponent(found?.pattern.exec(path)?.[1] ?? '');
  return (
    <Frame path={path} onSignOut={onSignOut}>
      <Suspense fallback={<Loading />}>
        {found ? <found.Page key={path} name={name} /> : path !== '/' && <Empty>There is no such page. Choose one above.</Empty>}
      </Suspense>
    </Frame>
  );
}
