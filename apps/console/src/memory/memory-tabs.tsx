import { Link, useLocation } from '../ui/router.js';

const PLACES = [
  ['/memory', 'Search'],
  ['/memory/records', 'Records'],
  ['/memory/documents', 'Documents'],
  ['/memory/consolidation', 'Consolidation'],
  ['/memory/erasure', 'Erasure'],
] as const;

/** The head of all pages about memory. */
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
