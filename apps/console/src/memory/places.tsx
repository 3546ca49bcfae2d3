import type { JsonObject } from '@bufbuild/protobuf';
import { useQuery } from '@tanstack/react-query';
import { useApi } from '../api/client.js';
import type { Node } from '../ui/graph.js';
import { TextFilter } from '../ui/list.js';
import { Link, useLocation } from '../ui/router.js';

const PLACES = [
  ['/memory', 'Search'],
  ['/memory/records', 'Records'],
  ['/memory/documents', 'Documents'],
  ['/memory/consolidation', 'Consolidation'],
  ['/memory/erasure', 'Erasure'],
] as const;

export function MemoryTabs() {
  const { path } = useLocation();
  return (
    <>
      <h1>Memory</h1>
      <nav className="places" aria-label="Parts of memory">
        {PLACES.map(([to, title]) => (
          <Link key={to} to={to} aria-current={path === to ? 'page' : undefined}>
            {title}
          </Link>
        ))}
      </nav>
    </>
  );
}

/** The filter by end user. It is hidden for a token that is bound to one user, because that token reads no other user's data. */
export function UserFilter() {
  const api = useApi();
  const { data: user } = useQuery({
    queryKey: ['bound user'],
    queryFn: async ({ signal }) =>
      (await api.send('GET', '/v1/tasks', { query: { page_size: 1 }, signal })).headers.get('etude-user') ?? '',
    staleTime: Infinity,
  });
  return user === '' && <TextFilter name="user" label="User" />;
}

/** The page of a memory record. The id of a skill is "name@version". */
export function placeOfRecord(layer: string, kind: string, id: string, agent = ''): string {
  if (kind === 'skill') {
    const [name = '', version = ''] = id.split('@');
    return `/skills/${encodeURIComponent(name)}?${new URLSearchParams({ ...(agent && { agent }), ...(version && { version }) })}`;
  }
  if (kind === 'fact') return `/memory/facts/${encodeURIComponent(id)}`;
  return `/memory/records/${layer}:${encodeURIComponent(id)}`;
}

/** A source such as "tasks/{task}" or "facts/{id}" with its page. The id of an episode may be the id of its rollout. */
export function nodeOfSource(source: string): Node {
  const [collection = '', id = ''] = source.split('/', 2);
  if (collection === 'tasks') return { title: source, to: `/tasks/${id}` };
  if (collection === 'facts') return { title: source, to: `/memory/facts/${id}` };
  if (collection === 'skills') return { title: source, to: placeOfRecord('procedural', 'skill', id) };
  if (collection === 'episodes') return { title: source, to: `/memory/records/episodic:${id.endsWith('.episode') ? id : `${id}.episode`}` };
  return { title: source, to: '' };
}

const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []);

export function sourcesOf(fields: JsonObject | undefined): Node[] {
  const task = typeof fields?.['task_id'] === 'string' ? [`tasks/${fields['task_id']}`] : [];
  const episodes = texts(fields?.['episodes']).map((id) => `episodes/${id}`);
  const all = [...task, ...episodes, ...texts(fields?.['sources']), ...texts(fields?.['touched'])];
  return [...new Map(all.map((source) => [source, nodeOfSource(source)] as const)).values()];
}
