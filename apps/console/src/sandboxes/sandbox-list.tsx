import { ListSandboxesResponseSchema, type Sandbox, SandboxSchema, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { requestId } from '../api/client.js';
import { useAct, useRead } from '../api/hooks.js';
import { ChoiceFilter, type Column, ReadList } from '../ui/list.js';
import { go, Link, useQueryValues } from '../ui/router.js';
import { Failed } from '../ui/states.js';
import { Badge, When } from '../ui/text.js';

const STATES = [
  ['', 'all'],
  ...['open', 'closed', 'expired', 'lost'].map((word) => [`SANDBOX_STATE_${word.toUpperCase()}`, word] as const),
] as const;

export const idOf = ({ name }: Sandbox) => name.slice('sandboxes/'.length);

export const SandboxBadge = ({ state }: { readonly state: SandboxState }) => (
  <Badge tone={state === SandboxState.OPEN ? 'good' : state === SandboxState.LOST ? 'bad' : 'plain'}>
    {(SandboxState[state] ?? 'unknown').toLowerCase()}
  </Badge>
);

const COLUMNS: ReadonlyArray<Column<Sandbox>> = [
  { title: 'Sandbox', cell: (sandbox) => <Link to={`/sandboxes/${idOf(sandbox)}`}>{idOf(sandbox)}</Link> },
  { title: 'State', cell: ({ state }) => <SandboxBadge state={state} /> },
  { title: 'Template', cell: ({ template }) => template },
  { title: 'Reason', prose: true, cell: ({ stateReason }) => stateReason },
  { title: 'Opened', cell: ({ createTime }) => <When at={createTime} /> },
  { title: 'Ends', cell: ({ expireTime }) => <When at={expireTime} /> },
];

export function SandboxListPage() {
  const { state, page } = useQueryValues('state', 'page');
  const read = useRead(ListSandboxesResponseSchema, '/v1/sandboxes', { state, page_token: page }, { everyMs: 5_000 });
  const open = useAct(async (api) => {
    const body = { request_id: requestId(), ttl: '1800s' };
    go(`/sandboxes/${idOf(await api.call(SandboxSchema, 'POST', '/v1/sandboxes', { body }))}`);
  });
  return (
    <>
      <h1>Sandboxes</h1>
      <div className="filters">
        <ChoiceFilter name="state" label="State" options={STATES} />
        <button type="button" className="primary" disabled={open.isPending} onClick={() => open.mutate(undefined)}>
          {open.isPending ? 'Opening…' : 'Open a sandbox'}
        </button>
      </div>
      {open.error && <Failed error={open.error} />}
      <ReadList
        label="sandboxes"
        read={read}
        of={({ sandboxes }) => sandboxes}
        keyOf={({ name }) => name}
        columns={COLUMNS}
        empty={<p>No sandbox is open. Open one to run Python and to keep files; it ends by itself after half an hour.</p>}
      />
    </>
  );
}
