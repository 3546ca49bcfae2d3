import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { keepPreviousData, useMutation, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import type { Api, ApiError, Fields } from './client.js';

export const ApiContext = createContext<Api | null>(null);

/** The API with the key of whoever is signed in. */
export function useApi(): Api {
  const api = useContext(ApiContext);
  if (api === null) throw new Error('no one is signed in');
  return api;
}

interface ReadOptions<T = unknown> {
  /**
   * Interval in ms of further reads while the page is visible, or a function of the last answer; false: no read until the page is shown
   * again.
   */
  readonly everyMs?: number | false | ((last: T | undefined) => number | false);
  readonly enabled?: boolean;
  /** Reads by POST with this body, as searches do. */
  readonly body?: Readonly<Record<string, unknown>>;
}

export type Read<T> = UseQueryResult<T, ApiError>;

/** The answer of a reading call. Its last answer stays until a new one is there. */
export function useRead<S extends DescMessage>(
  schema: S,
  path: string,
  query: Fields = {},
  { everyMs = false, enabled = true, body }: ReadOptions<MessageShape<S>> = {},
): Read<MessageShape<S>> {
  const api = useApi();
  return useQuery<MessageShape<S>, ApiError>({
    queryKey: [path, query, body],
    queryFn: ({ signal }) => api.call(schema, body ? 'POST' : 'GET', path, { query, body, signal }),
    placeholderData: keepPreviousData,
    structuralSharing: false,
    refetchInterval: typeof everyMs === 'function' ? ({ state }) => everyMs(state.data) : everyMs,
    enabled,
  });
}

/** A call that changes something. Afterwards everything that is shown is read again. */
export function useAct<Input, Result>(act: (api: Api, input: Input) => Promise<Result>) {
  const api = useApi();
  const client = useQueryClient();
  return useMutation<Result, ApiError, Input>({
    mutationFn: (input) => act(api, input),
    onSuccess: () => void client.invalidateQueries(),
  });
}
