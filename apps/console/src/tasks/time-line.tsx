import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { TaskEvent } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { memo } from 'react';
import { duration } from '../ui/text.js';

const MODEL_KINDS = new Set(['draft', 'critique', 'generate', 'act', 'compact', 'bind', 'wrap', 'learn']);
const WIDTH = 1_000;

interface Bar {
  readonly step: string;
  readonly from: number;
  readonly ms: number;
  readonly isModel: boolean;
}

function barsOf(events: readonly TaskEvent[]): Bar[] {
  return events.flatMap(({ time, event }) => {
    if (event.case !== 'stepFinished' || time === undefined) return [];
    const ms = Number(event.value.durationMs);
    return [{ step: event.value.step, from: timestampMs(time) - ms, ms, isModel: MODEL_KINDS.has(event.value.kind) }];
  });
}

/** Where the time went: a bar for each step, those that asked the model in another colour. */
export const TimeLine = memo(({ events }: { readonly events: readonly TaskEvent[] }) => {
  const bars = barsOf(events);
  if (bars.length === 0) return null;
  const begin = Math.min(...bars.map(({ from }) => from));
  const total = Math.max(1, ...bars.map(({ from, ms }) => from + ms - begin));
  const model = bars.reduce((sum, { ms, isModel }) => sum + (isModel ? ms : 0), 0);
  const said = `${bars.length} steps in ${duration(total)}, ${duration(model)} of them with the model`;
  return (
    <figure>
      <svg className="bar" viewBox={`0 0 ${WIDTH} 34`} preserveAspectRatio="none" role="img" aria-label={said}>
        {bars.map(({ step, from, ms, isModel }) => (
          <rect
            key={step}
            className={isModel ? 'model' : undefined}
            x={((from - begin) / total) * WIDTH}
            y={isModel ? 0 : 17}
            width={Math.max(1.5, (ms / total) * WIDTH)}
            height={16}
          >
            <title>{`${step}: ${duration(ms)}`}</title>
          </rect>
        ))}
      </svg>
      <figcaption>{said}</figcaption>
    </figure>
  );
});
