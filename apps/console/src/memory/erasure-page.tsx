import { type ErasureReceipt, ErasureReceiptSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { useState } from 'react';
import { requestId, useAct, useRead } from '../api/client.js';
import { Button } from '../ui/button.js';
import { Confirm } from '../ui/dialog.js';
import { go, useQueryValue } from '../ui/router.js';
import { Loaded } from '../ui/states.js';
import { Badge, Details, submitting, When } from '../ui/text.js';
import { MemoryTabs } from './places.js';

export function ErasurePage() {
  const [receipt] = useQueryValue('receipt');
  const [kind, setKind] = useState('user');
  const [whose, setWhose] = useState('');
  const [isOpen, setOpen] = useState(false);
  const erase = useAct(async (api) => {
    const body = { [kind]: whose, request_id: requestId() };
    const { id } = await api.call(ErasureReceiptSchema, 'POST', '/v1/memory:erase', { body });
    setOpen(false);
    go(`/memory/erasure?receipt=${encodeURIComponent(id)}`);
  });
  return (
    <>
      <MemoryTabs />
      <form className="filters" onSubmit={submitting(() => setOpen(true))}>
        <label className="field">
          <span>Erase everything of a</span>
          <select value={kind} onChange={({ target }) => setKind(target.value)}>
            <option>user</option>
            <option>agent</option>
          </select>
        </label>
        <label className="field wide">
          <span>Name of the {kind}</span>
          <input value={whose} onChange={({ target }) => setWhose(target.value)} />
        </label>
        <Button text="Erase…" tone="danger" disabled={whose.trim() === ''} />
      </form>
      <Confirm
        title={`Permanently erase all data of ${kind} “${whose}”?`}
        open={isOpen}
        onClose={() => setOpen(false)}
        yes="Erase for good"
        act={erase}
        onYes={() => erase.mutate(undefined)}
      >
        <p>Facts, episodes, documents, conversations, tasks and skills of this {kind} are removed. Nobody can bring them back.</p>
      </Confirm>
      {receipt === '' ? (
        <p className="quiet">After an erasure, this page shows its receipt. You can keep the page's address.</p>
      ) : (
        <Receipt id={receipt} />
      )}
    </>
  );
}

function Receipt({ id }: { readonly id: string }) {
  const read = useRead(
    ErasureReceiptSchema,
    `/v1/memory/erasures/${encodeURIComponent(id)}`,
    {},
    { everyMs: (receipt) => receipt?.state === 'running' && 1_000 },
  );
  return <Loaded read={read}>{(receipt) => <Shown receipt={receipt} />}</Loaded>;
}

const counts = (map: Readonly<Record<string, bigint>>) =>
  Object.entries(map)
    .map(([place, count]) => `${place}: ${count}`)
    .join(', ');

const Shown = ({ receipt }: { readonly receipt: ErasureReceipt }) => (
  <div className="note">
    <h2>
      Receipt <Badge tone={receipt.state === 'failed' ? 'bad' : receipt.state === 'running' ? 'busy' : 'good'}>{receipt.state}</Badge>
    </h2>
    <Details
      rows={[
        ['Id', <code key="id">{receipt.id}</code>],
        ['Asked', <When key="asked" at={receipt.requestTime} />],
        ['Finished', receipt.finishTime && <When key="finished" at={receipt.finishTime} />],
        ['Removed', counts(receipt.removed)],
        ['Found afterwards', counts(receipt.left)],
        ['Kept, though based on removed records', receipt.supported.join(', ')],
        ['Notes', receipt.notes.join(' ')],
        ['Error', receipt.error],
      ]}
    />
  </div>
);
