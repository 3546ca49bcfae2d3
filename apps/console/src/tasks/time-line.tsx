import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { TaskEvent } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { memo } from 'react';
import { counted, duration } from '../ui/text.js';

const MODEL_KINDS = new Set(['draft', 'critique', 'generate', 'act', 'compact', 'bind', 'wrap', 'learn']);
const WIDTH = 1_000;

interface Bar {
  readonly from: number;
  readonly ms: number;
  readonly isModel: boolean;
}

function barsOf(events: readonly TaskEvent[]): Bar[] {
  return events.flatMap(({ time, event }) => {
    if (event.case !== 'stepFinished' || time === undefined) return [];
    const ms = Number(event.value.durationMs);
    return [{ from: timestampMs(time) - ms, ms, isModel: MODEL_KINDS.has(event.value.kind) }];
  });
}

/**
 * Where the time went: a bar for each step. Steps that asked the model have their own row. One shape per row, since a task may have
 * thousands.
 */
export const TimeLine = memo(({ events }: { readonly events: readonly TaskEvent[] }) => {
  const bars = barsOf(events);
  if (bars.length === 0) return null;
  const begin = bars.reduce((least, { from }) => Math.min(least, from), Infinity);
  const total = bars.reduce((most, { from, ms }) => Math.max(most, from + ms - begin), 1);
  const model = bars.reduce((sum, { ms, isModel }) => sum + (isModel ? ms : 0), 0);
  const shape = (isModel: boolean, y: number) =>
    bars
      .filter((bar) => bar.isModel === isModel)
      .map(({ from, ms }) => {
        const [x, width] = [((from - begin) / total) * WIDTH, Math.max(1.5, (ms / total) * WIDTH)].map((value) => value.toFixed(1));
        return `M${x} ${y}h${width}v16h-${width}z`;
      })
      .join('');
  const said = `${counted(bars.length, 'step')} in ${duration(total)}, ${duration(model)} of them with the model (above)`;
  return (
    <figure>
      <svg className="bar" viewBox={`0 0 ${WIDTH} 34`} preserveAspectRatio="none" role="img" aria-label={said}>
        <path className="model" d={shape(true, 0)} />
        <path d={shape(false, 17)} />
      </svg>
      <figcaption>{said}</figcaption>
    </figure>
  );
});
