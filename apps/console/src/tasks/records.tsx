import type { StepRecord } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { placeOfRecord } from '../memory/places.js';
import { Output } from '../ui/code.js';
import { Link } from '../ui/router.js';
import { Badge } from '../ui/text.js';

const EPISODIC = new Set(['transition', 'episode']);

/** Records of memory that a step recalled. */
export const Records = ({ records }: { readonly records: readonly StepRecord[] }) =>
  records.map(({ kind, id, title, text }) => (
    <div key={`${kind} ${id}`} className="hit">
      <Badge>{kind}</Badge> <Link to={placeOfRecord(EPISODIC.has(kind) ? 'episodic' : 'semantic', kind, id)}>{title || id}</Link>
      <Output text={text} label={title || id} />
    </div>
  ));
