import { type Task, type TaskEvent, TaskEventSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { useEffect, useRef, useState } from 'react';
import { type ApiError, follow } from '../api/client.js';
import { useApi } from '../api/hooks.js';

interface LiveText {
  readonly step: string;
  readonly text: string;
}

export interface Watched {
  readonly events: readonly TaskEvent[];
  /** What the model is writing now. */
  readonly live: LiveText | null;
  readonly isConnected: boolean;
  readonly error: ApiError | null;
  /** The finished task, once its last event is there. */
  readonly finished: Task | undefined;
}

const NOTHING: Watched = { events: [], live: null, isConnected: true, error: null, finished: undefined };

const STREAM = {
  schema: TaskEventSchema,
  ask: { query: { text: true } },
  isLast: ({ event }: TaskEvent) => event.case === 'finished',
};

/** Adds events to what was seen. Text that the model writes is shown until its step is done. */
function withEvents(before: Watched, added: readonly TaskEvent[]): Watched {
  let { live, finished } = before;
  const events = [...before.events];
  for (const one of added) {
    const { event } = one;
    if (event.case === 'modelText') {
      const { step, text } = event.value;
      live = { step, text: live?.step === step ? live.text + text : text };
      continue;
    }
    if (event.case === 'stepFinished' && event.value.step === live?.step) live = null;
    if (event.case === 'finished') finished = event.value.task;
    events.push(one);
  }
  return { ...before, events, live, finished };
}

/** Everything that happens to a task, live. What arrives within a frame is shown together. */
export function useTaskEvents(id: string): Watched {
  const api = useApi();
  const [watched, setWatched] = useState(NOTHING);
  const waiting = useRef<TaskEvent[]>([]);
  useEffect(() => {
    const gone = new AbortController();
    const { signal } = gone;
    let frame = 0;
    setWatched(NOTHING);
    const onConnected = (isConnected: boolean) => setWatched((before) => ({ ...before, isConnected }));
    const show = () => {
      frame = 0;
      const added = waiting.current.splice(0);
      setWatched((before) => withEvents(before, added));
    };
    const watch = async () => {
      for await (const event of follow(api, { ...STREAM, path: `/v1/tasks/${id}:watch`, signal, onConnected })) {
        waiting.current.push(event);
        frame ||= requestAnimationFrame(show);
      }
    };
    watch().catch((error: ApiError) => setWatched((before) => ({ ...before, error })));
    return () => {
      gone.abort();
      cancelAnimationFrame(frame);
      waiting.current = [];
    };
  }, [api, id]);
  return watched;
}
