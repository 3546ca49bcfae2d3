import type { StepRecord } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Link } from '../ui/router.js';
import { Output } from '../ui/code.js';
import { Badge } from '../ui/text.js';

/** Where a record of memory is shown. A skill is "name@version". */
export function placeOfRecord(kind: string, id: string): string {
  if (kind === 'skill') return `/skills/${encodeURIComponent(id.split('@', 1)[0]!)}`;
  if (kind === 'fact') return `/memory/facts/${encodeURIComponent(id)}`;
  const layer = kind === 'chunk' || kind === 'turn' ? 'semantic' : 'episodic';
  return `/memory/records/${layer}/${encodeURIComponent(id)}`;
}

export const Records = ({ records }: { readonly records: readonly StepRecord[] }) =>
  records.map(({ kind, id, title, text }) => (
    <div key={`${kind} ${id}`} className="hit">
      <Badge>{kind}</Badge> <Link to={placeOfRecord(kind, id)}>{title || id}</Link>
      <Output text={text} label={title || id} />
    </div>
  ));
