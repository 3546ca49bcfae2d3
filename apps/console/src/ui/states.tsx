import type { ReactNode } from 'react';
import type { ApiError, Read } from '../api/client.js';
import { Button } from './button.js';

const ADVICE: Readonly<Record<string, string>> = {
  PERMISSION_DENIED: 'Sign in with a key that has the named role; docs/authentication.md describes how to make one.',
  UNAUTHENTICATED: 'Sign out, and sign in with a valid key.',
  NOT_FOUND: 'The record may have been deleted, or belong to another tenant. Go back to the list.',
  UNREACHABLE: 'The page tries again automatically.',
};

export function Failed({ error, again }: { readonly error: ApiError; readonly again?: () => void }) {
  return (
    <div className="note bad" role="alert">
      <strong>{error.code ?? 'The page failed'}</strong>
      <p>{error.message}</p>
      {ADVICE[error.code] !== undefined && <p>{ADVICE[error.code]}</p>}
      {again && <Button text="Try again" onPress={again} />}
    </div>
  );
}

export const Loading = () => (
  <p className="quiet loading" role="status">
    Loading…
  </p>
);

export const Empty = ({ children }: { readonly children: ReactNode }) => <div className="note quiet">{children}</div>;

/** Shows the answer of a read, "Loading…" before it, or its error. If a later read fails, the earlier answer stays visible. */
export function Loaded<T>({ read, children }: { readonly read: Read<T>; readonly children: (data: T) => ReactNode }) {
  const again = () => void read.refetch();
  if (read.data === undefined) return read.error ? <Failed error={read.error} again={again} /> : <Loading />;
  return (
    <>
      {read.error && <Failed error={read.error} again={again} />}
      {children(read.data)}
    </>
  );
}
