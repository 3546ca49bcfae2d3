import { CSPProvider } from '@base-ui/react/csp-provider';
import { createRoot } from 'react-dom/client';
import { Frame } from './app/frame.js';
import './app/style.css';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { type ComponentType, lazy, Suspense, useMemo, useState } from 'react';
import { Api, ApiContext, ApiError } from './api/client.js';
import { ListTasksResponseSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Button } from './ui/button.js';
import { go, type PageProps, useLocation } from './ui/router.js';
import { Empty, Failed, Loading } from './ui/states.js';
import { submitting } from './ui/text.js';

type Page = ComponentType<PageProps>;
type Load = () => Promise<Page>;

/** Each page is loaded when it is opened. The page gets the part of the path at `:name`. */
const LOADS: ReadonlyArray<readonly [path: string, load: Load]> = [
  ['/tasks', async () => (await import('./tasks/task-list.js')).TaskListPage],
  ['/tasks/:name', async () => (await import('./tasks/task-page.js')).TaskPage],
  ['/skills', async () => (await import('./skills/skill-list.js')).SkillListPage],
  ['/skills/:name', async () => (await import('./skills/skill-page.js')).SkillPage],
  ['/review', async () => (await import('./skills/review-page.js')).ReviewListPage],
  ['/review/:name', async () => (await import('./skills/review-page.js')).ReviewPage],
  ['/memory', async () => (await import('./memory/search-page.js')).MemorySearchPage],
  ['/memory/records', async () => (await import('./memory/record-page.js')).MemoryRecordsPage],
  ['/memory/records/:name', async () => (await import('./memory/record-page.js')).MemoryRecordPage],
  ['/memory/facts/:name', async () => (await import('./memory/record-page.js')).FactPage],
  ['/memory/documents', async () => (await import('./memory/documents-page.js')).DocumentsPage],
  ['/memory/consolidation', async () => (await import('./memory/consolidation-page.js')).ConsolidationPage],
  ['/memory/erasure', async () => (await import('./memory/erasure-page.js')).ErasurePage],
  ['/learning', async () => (await import('./learning/learning-page.js')).LearningPage],
  ['/sandboxes', async () => (await import('./sandboxes/sandbox-page.js')).SandboxListPage],
  ['/sandboxes/:name', async () => (await import('./sandboxes/sandbox-page.js')).SandboxPage],
  ['/operations', async () => (await import('./operations/operations-page.js')).OperationsPage],
  ['/operations/:name', async () => (await import('./operations/dead-letters-page.js')).DeadLettersPage],
];

const PAGES = LOADS.map(([path, load]) => {
  const pattern = new RegExp(`^${path.replace(':name', '([^/]+)')}$`);
  return { pattern, Page: lazy(async () => ({ default: await load() })) };
});

function Pages({ onSignOut }: { readonly onSignOut: () => void }) {
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

/** The key of an address such as `/console/#key=...`. It is removed from the address and from the history at once. */
function takeKeyOfAddress(): string {
  const key = new URLSearchParams(location.hash.slice(1)).get('key') ?? '';
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
  return key;
}

function SignIn({ onKey }: { readonly onKey: (key: string) => void }) {
  const [key, setKey] = useState('');
  const [error, setError] = useState<ApiError | null>(null);
  const [isTrying, setTrying] = useState(false);
  const tryKey = () => {
    setTrying(true);
    new Api(key.trim())
      .call(ListTasksResponseSchema, 'GET', '/v1/tasks', { query: { page_size: 1 } })
      .then(() => onKey(key.trim()))
      .catch((reason: ApiError) => setError(reason))
      .finally(() => setTrying(false));
  };
  return (
    <main className="sign-in">
      <h1>Etude</h1>
      <form onSubmit={submitting(tryKey)}>
        <label className="field">
          <span>API key, or a token of your identity provider</span>
          <input
            type="password"
            autoComplete="off"
            spellCheck={false}
            autoFocus
            value={key}
            onChange={({ target }) => setKey(target.value)}
          />
        </label>
        <Button text="Sign in" tone="primary" disabled={key.trim() === '' || isTrying} />
      </form>
      {error && <Failed error={error} />}
      <p className="quiet">
        The key stays in the memory of this page and is gone when you close or reload it. On this machine <code>./etude up</code> prints an
        address that signs in, and the key is in the file <code>.etude/key</code>.
      </p>
    </main>
  );
}

/** The key is only in this page's memory. After a reload, the page asks for it again. */
const given = takeKeyOfAddress();

const isWorthARetry = (failures: number, error: Error) =>
  failures < 3 && error instanceof ApiError && (error.status === 0 || error.status >= 500);

const newClient = () => new QueryClient({ defaultOptions: { queries: { retry: isWorthARetry, staleTime: 1_000 } } });

function App() {
  const [key, setKey] = useState(given);
  const session = useMemo(() => (key === '' ? null : { api: new Api(key), client: newClient() }), [key]);
  if (session === null) return <SignIn onKey={setKey} />;
  return (
    <QueryClientProvider client={session.client}>
      <ApiContext value={session.api}>
        <Pages onSignOut={() => setKey('')} />
      </ApiContext>
    </QueryClientProvider>
  );
}

createRoot(document.querySelector('#root')!).render(
  <CSPProvider disableStyleElements>
    <App />
  </CSPProvider>,
);
