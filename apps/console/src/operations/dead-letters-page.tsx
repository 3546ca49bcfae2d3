import { type DeadLetter, ListDeadLettersResponseSchema, RedriveDeadLettersResponseSchema } from '@etude/contracts/gen/etude/v1/queues_pb';
import { useState } from 'react';
import { useAct, useRead } from '../api/client.js';
import { ActButton } from '../ui/button.js';
import { Output } from '../ui/code.js';
import { type Column, ReadList } from '../ui/list.js';
import { Link, type PageProps, useQueryValue } from '../ui/router.js';
import { Failed } from '../ui/states.js';
import { counted, When } from '../ui/text.js';

type Which = { readonly ids: readonly string[] } | { readonly all: true };

const COLUMNS: ReadonlyArray<Column<DeadLetter>> = [
  { title: 'Code', cell: ({ code }) => code },
  { title: 'Reason', prose: true, cell: (letter) => <Reason letter={letter} /> },
  { title: 'Attempts', number: true, cell: ({ attempts }) => attempts },
  { title: 'Failed', cell: ({ failTime }) => <When at={failTime} /> },
];

export function DeadLettersPage({ name: queue }: PageProps) {
  const [page] = useQueryValue('page');
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const path = `/v1/queues/${queue}/deadLetters`;
  const read = useRead(ListDeadLettersResponseSchema, path, { page_size: 50, page_token: page }, { everyMs: 3_000 });
  const redrive = useAct(async (api, body: Which) => {
    const answer = await api.call(RedriveDeadLettersResponseSchema, 'POST', `${path}:redrive`, { body });
    setChosen(new Set());
    return answer;
  });
  const toggle = (id: string) => setChosen((before) => new Set(before.has(id) ? [...before].filter((one) => one !== id) : [...before, id]));
  const choose: Column<DeadLetter> = {
    title: 'Choose',
    cell: ({ id }) => (
      <label className="check">
        <input type="checkbox" checked={chosen.has(id)} onChange={() => toggle(id)} />
        <code>{id}</code>
      </label>
    ),
  };
  return (
    <>
      <p>
        <Link to="/operations">All queues</Link>
      </p>
      <h1>Dead letters of {queue}</h1>
      <div className="buttons">
        <ActButton
          act={redrive}
          input={{ ids: [...chosen] }}
          text={`Redrive the ${chosen.size} chosen`}
          tone="primary"
          disabled={chosen.size === 0}
        />
        <ActButton act={redrive} input={{ all: true }} text="Redrive all" disabled={!read.data?.deadLetters.length} />
      </div>
      {redrive.error && <Failed error={redrive.error} />}
      <div aria-live="polite">
        {redrive.data && (
          <p className="note">
            {counted(redrive.data.redriven, 'job')} queued again. {redrive.data.refused.join('; ')}
          </p>
        )}
      </div>
      <ReadList
        label="dead letters"
        read={read}
        of={({ deadLetters }) => deadLetters}
        keyOf={({ id }) => id}
        columns={[choose, ...COLUMNS]}
        empty={<p>This queue has no dead letters.</p>}
      />
    </>
  );
}

const Reason = ({ letter: { reason, path, payloadJson } }: { readonly letter: DeadLetter }) => (
  <>
    {reason} {path && <code>{path}</code>}
    <details>
      <summary>Payload</summary>
      <Output text={payloadJson} label="Payload" />
    </details>
  </>
);
