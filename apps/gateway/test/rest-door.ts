import { freePort } from '@etude/test-support/ports';
import { type KeyName, KEYS } from './gateway.harness.js';

interface Answer {
  readonly status: number;
  /** Null: no body. */
  readonly body: Record<string, unknown>;
}

export const bearer = (key: KeyName) => ({ authorization: `Bearer ${KEYS[key]}` });

/** A client of JSON over HTTP, for a gateway that was started with `settings`. */
export function restDoor() {
  let base = '';
  const send = (verb: string, path: string, body: string | Buffer<ArrayBuffer> | null, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${base}${path}`, { method: verb, body, headers: { ...bearer('acme'), 'content-type': 'application/json', ...headers } });
  return {
    settings: async () => {
      const port = String(await freePort());
      base = `http://127.0.0.1:${port}`;
      return { ETUDE_REST_PORT: port };
    },
    send,
    ask: async (verb: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer> => {
      const response = await send(verb, path, typeof body === 'string' ? body : body === undefined ? null : JSON.stringify(body), headers);
      const text = await response.text();
      return { status: response.status, body: (text === '' ? null : JSON.parse(text)) as Answer['body'] };
    },
  };
}
