import { CSPProvider } from '@base-ui/react/csp-provider';
import { createRoot } from 'react-dom/client';
import { applyTheme } from './app/frame.js';
import './app/style.css';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { Api, ApiError } from './api/client.js';
import { ApiContext } from './api/hooks.js';
import { Pages } from './app/pages.js';
import { ListTasksResponseSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Failed } from './ui/states.js';
import { submitting } from './ui/text.js';

/** The key of an address such as `/console/#key=...`. It is removed from the address and from the history at once. */
function takeKeyOfAddress(): string {
  const key = new URLSearchParams(location.hash.slice(1)).get('key') ?? '';
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
  return key;
}

/** Asks for a key and tries it. */
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
        <button type="submit" className="primary" disabled={key.trim() === '' || isTrying}>
          Sign in
        </button>
      </form>
      {error && <Failed error={error} />}
      <p className="quiet">
        The key stays in the memory of this page and is gone when you close or reload it. On this machine <code>./etude up</code> prints an
        address that signs in, and the key is in the file <code>.etude/key</code>.
      </p>
    </main>
  );
}

/** The key lives in the memory of this page only; a reload asks for it again. */
const given = takeKeyOfAddress();

/** A refused call is not repeated. A gateway that does not answer may be back soon. */
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

applyTheme();
createRoot(document.querySelector('#root')!).render(
  <CSPProvider disableStyleElements>
    <App />
  </CSPProvider>,
);
