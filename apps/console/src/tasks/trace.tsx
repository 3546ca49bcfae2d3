import { type TaskEvent, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, memo, type ReactNode, useEffect, useId, useRef } from 'react';
import { counted, duration, firstLine, Scripted } from '../ui/text.js';
import { State, tokensOf, VerdictOf } from './task-words.js';
import { timestampMs } from '@bufbuild/protobuf/wkt';

const ROW_PX = 28;

/** The step of an event; '' if the event has no step. Only events with a step can be selected. */
const stepOf = ({ event }: TaskEvent) => (event.case === 'stepFinished' ? event.value.step : '');

function lineOf({ event }: TaskEvent): readonly [what: ReactNode, told: ReactNode, aside?: ReactNode] {
  switch (event.case) {
    case 'stateChanged':
      return ['task', <State key="state" state={event.value.state} />, TaskState[event.value.state] === undefined ? 'unknown' : ''];
    case 'attemptStarted':
      return [event.value.attempt === 0 ? 'skill' : `attempt ${event.value.attempt}`, 'begins'];
    case 'attemptFinished':
      return [event.value.attempt === 0 ? 'skill' : `attempt ${event.value.attempt}`, <VerdictOf key="verdict" {...event.value} />];
    case 'workerChanged':
      return ['worker', `continued by a worker (epoch ${event.value.epoch})`];
    case 'question':
      return ['question', firstLine(event.value.text)];
    case 'finished':
      return ['task', 'finished'];
    case 'stepFinished': {
      const { step, summary, durationMs, usage, scripted } = event.value;
      const tokens = tokensOf(usage);
      return [
        step,
        <>
          <Scripted when={scripted} /> {firstLine(summary, 160)}
        </>,
        `${tokens > 0 ? `${tokens} tokens · ` : ''}${duration(Number(durationMs))}`,
      ];
    }
    default:
      return ['', ''];
  }
}

interface TraceProps {
  readonly events: readonly TaskEvent[];
  /** The step that is shown beside the trace. */
  readonly chosen: string;
  readonly onChoose: (step: string) => void;
  readonly isLive: boolean;
}

interface Sight {
  readonly count: number;
  /** Index of the chosen step, or -1. */
  readonly at: number;
  readonly isLive: boolean;
}

/** Keeps the newest row of a running task in view, as long as `isAtEnd`. Scrolls once to the chosen step of an ended task. @returns `isAtEnd` */
function useSight(rows: Virtualizer<HTMLDivElement, Element>, { count, at, isLive }: Sight) {
  const isAtEnd = useRef(true);
  const isPlaced = useRef(false);
  useEffect(() => {
    if (isLive && isAtEnd.current && count > 0) rows.scrollToIndex(count - 1);
  }, [count, isLive, rows]);
  useEffect(() => {
    if (isLive || isPlaced.current || at < 0) return;
    isPlaced.current = true;
    rows.scrollToIndex(at, { align: 'center' });
  }, [at, isLive, rows]);
  return isAtEnd;
}

/** All events of a task. Only visible rows are in the page. Arrow keys, j and k choose a step. While the task runs, its end stays visible. */
export function Trace({ events, chosen, onChoose, isLive }: TraceProps) {
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const rows = useVirtualizer({ count: events.length, getScrollElement: () => box.current, estimateSize: () => ROW_PX, overscan: 12 });
  const at = events.findLastIndex((event) => chosen !== '' && stepOf(event) === chosen);
  const drawn = rows.getVirtualItems();
  const isAtEnd = useSight(rows, { count: events.length, at, isLive });
  const move = (by: number) => {
    for (let next = at + by; next >= 0 && next < events.length; next += by) {
      const step = stepOf(events[next]!);
      if (step === '') continue;
      onChoose(step);
      rows.scrollToIndex(next);
      return;
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    move(by);
  };
  const onScroll = () => {
    const { scrollTop, clientHeight, scrollHeight } = box.current!;
    isAtEnd.current = scrollTop + clientHeight > scrollHeight - 2 * ROW_PX;
  };
  return (
    <div
      ref={box}
      className="trace"
      style={{ height: `min(62vh, ${Math.max(rows.getTotalSize(), ROW_PX) + 2}px)` }}
      role="listbox"
      aria-label="Steps and events"
      aria-activedescendant={drawn.some(({ index }) => index === at) ? `${id}-${at}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onScroll={onScroll}
    >
      <div className="rows" role="presentation" style={{ height: rows.getTotalSize() }}>
        {drawn.map(({ index, start }) => {
          const event = events[index]!;
          const [what, told, aside] = lineOf(event);
          const step = stepOf(event);
          return (
            <div
              key={index}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === at}
              aria-setsize={events.length}
              aria-posinset={index + 1}
              className={step === '' ? 'row told' : 'row step'}
              style={{ transform: `translateY(${start}px)`, height: ROW_PX }}
              onClick={() => step !== '' && onChoose(step)}
            >
              <span className="cut">{what}</span>
              <span className="cut">{told}</span>
              <span className="took">{aside}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

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

/** The upper row has the steps that called the model. Each row is a single shape, because a task may have thousands of steps. */
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
  const said = `${counted(bars.length, 'step')} in ${duration(total)}, ${duration(model)} of that in model calls (upper row)`;
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
