import { ListTasksResponseSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { type FormEvent, useState } from 'react';
import { Api, type ApiError } from '../api/client.js';
import { Failed } from '../ui/states.js';

/** The key of an address such as `/console/#key=...`. It is removed from the address and from the history at once. */
export function takeKeyOfAddress(): string {
  const key = new URLSearchParams(location.hash.slice(1)).get('key') ?? '';
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
  return key;
}

/** Asks for a key and tries it. */
export function SignIn({ onKey }: { readonly onKey: (key: string) => void }) {
  const [key, setKey] = useState('');
  const [error, setError] = useState<ApiError | null>(null);
  const [isTrying, setTrying] = useState(false);
  const tryKey = (event: FormEvent) => {
    event.preventDefault();
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
      <form onSubmit={tryKey}>
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
