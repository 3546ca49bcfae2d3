import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { Api, ApiError } from '../api/client.js';
import { ApiContext } from '../api/hooks.js';
import { Pages } from './pages.js';
import { SignIn, takeKeyOfAddress } from './sign-in.js';

/** The key lives in the memory of this page only; a reload asks for it again. */
const given = takeKeyOfAddress();

/** A refused call is not repeated. A gateway that does not answer may be back soon. */
const isWorthARetry = (failures: number, error: Error) =>
  failures < 3 && error instanceof ApiError && (error.status === 0 || error.status >= 500);

const newClient = () => new QueryClient({ defaultOptions: { queries: { retry: isWorthARetry, staleTime: 1_000 } } });

export function App() {
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
