/** Environment variables that say which model is asked. */
export interface ModelSettings {
  readonly OPENAI_MODEL?: string | undefined;
  readonly OPENAI_BASE_URL?: string | undefined;
}

export const DEFAULT_BASE_URL = 'https://api.openai.com/v1';

/** A server that needs no name is asked for the first model that it lists. */
export function modelName({ OPENAI_MODEL, OPENAI_BASE_URL = '' }: ModelSettings): string {
  return OPENAI_MODEL || `the first model of ${URL.parse(OPENAI_BASE_URL)?.host ?? OPENAI_BASE_URL}`;
}

/** To be shown: without the name, the password and the query, which may hold a key. null where it is no URL. */
export function modelUrl({ OPENAI_BASE_URL }: ModelSettings): string | null {
  const url = URL.parse(OPENAI_BASE_URL || DEFAULT_BASE_URL);
  return url && `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}
