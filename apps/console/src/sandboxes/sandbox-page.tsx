import {
  CancelExecutionResponseSchema,
  DeleteSandboxFileResponseSchema,
  ListSandboxesResponseSchema,
  ListSandboxFilesResponseSchema,
  type Sandbox,
  type SandboxFile,
  SandboxFileSchema,
  SandboxSchema,
  SandboxState,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { type KeyboardEvent, useState } from 'react';
import { requestId, useAct, useRead } from '../api/client.js';
import { ActButton, Button } from '../ui/button.js';
import { Code, Output } from '../ui/code.js';
import { go, Link, type PageProps, useQueryValues } from '../ui/router.js';
import { Failed, Loaded } from '../ui/states.js';
import { Badge, Details, duration, submitting, When } from '../ui/text.js';
import { type Cell, Rich, useCells } from './cells.js';
import { ChoiceFilter, type Column, ReadList } from '../ui/list.js';

const STATES = [
  ['', 'all'],
  ...['open', 'closed', 'expired', 'lost'].map((word) => [`SANDBOX_STATE_${word.toUpperCase()}`, word] as const),
] as const;

const idOf = ({ name }: Sandbox) => name.slice('sandboxes/'.length);

const SandboxBadge = ({ state }: { readonly state: SandboxState }) => (
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
        <ActButton act={open} input={null} text={open.isPending ? 'Opening…' : 'Open a sandbox'} tone="primary" />
      </div>
      {open.error && <Failed error={open.error} />}
      <ReadList
        label="sandboxes"
        read={read}
        of={({ sandboxes }) => sandboxes}
        keyOf={({ name }) => name}
        columns={COLUMNS}
        empty={<p>No sandbox is open. Open one to run Python and to keep files. It ends after half an hour.</p>}
      />
    </>
  );
}

export function SandboxPage({ name }: PageProps) {
  const read = useRead(SandboxSchema, `/v1/sandboxes/${name}`, {}, { everyMs: 10_000 });
  return <Loaded read={read}>{(sandbox) => <Shown sandbox={sandbox} />}</Loaded>;
}

function Shown({ sandbox }: { readonly sandbox: Sandbox }) {
  const id = idOf(sandbox);
  const { cells, run, isRunning } = useCells(id);
  const isOpen = sandbox.state === SandboxState.OPEN;
  return (
    <>
      <h1>
        Sandbox {id} <SandboxBadge state={sandbox.state} />
      </h1>
      <Head sandbox={sandbox} isOpen={isOpen} />
      <div className="columns">
        <section aria-label="Cells">
          {cells.map((cell, at) => (
            <CellOf key={cell.id} cell={cell} number={at + 1} sandbox={id} />
          ))}
          {isOpen && <Editor isRunning={isRunning} onRun={(code) => void run(code)} />}
        </section>
        {isOpen && <Files sandbox={id} />}
      </div>
    </>
  );
}

function Head({ sandbox, isOpen }: { readonly sandbox: Sandbox; readonly isOpen: boolean }) {
  const path = `/v1/sandboxes/${idOf(sandbox)}`;
  const renew = useAct((api) => api.call(SandboxSchema, 'POST', `${path}:renew`, { body: { ttl: '1800s' } }));
  const close = useAct((api) => api.call(SandboxSchema, 'POST', `${path}:close`, { body: {} }));
  const error = renew.error ?? close.error;
  return (
    <>
      <Details
        rows={[
          ['Template', sandbox.template],
          ['Reason', sandbox.stateReason],
          ['Opened', <When key="opened" at={sandbox.createTime} />],
          [isOpen ? 'Ends by itself' : 'Ended', <When key="ends" at={sandbox.expireTime} />],
        ]}
      />
      {isOpen && (
        <div className="buttons">
          <ActButton act={renew} input={null} text="Half an hour more" />
          <ActButton act={close} input={null} text="End it" tone="danger" />
        </div>
      )}
      {error && <Failed error={error} />}
    </>
  );
}

function Editor({ isRunning, onRun }: { readonly isRunning: boolean; readonly onRun: (code: string) => void }) {
  const [code, setCode] = useState('');
  const run = () => {
    if (code.trim() === '' || isRunning) return;
    onRun(code);
    setCode('');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run();
  };
  return (
    <form className="cell" onSubmit={submitting(run)}>
      <label className="field">
        <span>Python; Ctrl+Enter runs it</span>
        <textarea
          className="code"
          rows={6}
          spellCheck={false}
          value={code}
          onChange={({ target }) => setCode(target.value)}
          onKeyDown={onKeyDown}
          data-search
        />
      </label>
      <Button text={isRunning ? 'Running…' : 'Run'} tone="primary" disabled={code.trim() === '' || isRunning} />
    </form>
  );
}

function CellOf({ cell, number, sandbox }: { readonly cell: Cell; readonly number: number; readonly sandbox: string }) {
  const { code, stdout, stderr, displays, outcome, error } = cell;
  const stop = useAct((api) =>
    api.call(CancelExecutionResponseSchema, 'POST', `/v1/sandboxes/${sandbox}:cancel`, { body: { execution_id: cell.id } }),
  );
  const isRunning = outcome === null && error === null;
  return (
    <article className="cell" aria-label={`Cell ${number}`} aria-busy={isRunning}>
      <Code code={code} label={`Code of cell ${number}`} />
      {stdout !== '' && <Output text={stdout} label={`Output of cell ${number}`} />}
      {displays.map((output, at) => (
        <Rich key={at} output={output} />
      ))}
      {stderr !== '' && <Output text={stderr} label={`Errors of cell ${number}`} tone="bad" />}
      {error && <Failed error={error} />}
      {isRunning && <ActButton act={stop} input={null} text="Stop" tone="danger" />}
      {outcome && (
        <p>
          <Badge tone={outcome.exit === 'ok' ? 'good' : 'bad'}>{outcome.exit}</Badge>{' '}
          <span className="quiet">{duration(Number(outcome.wall?.seconds ?? 0n) * 1_000 + (outcome.wall?.nanos ?? 0) / 1e6)}</span>
          {outcome.stateLost && ' The interpreter was restarted: variables are lost, files are kept.'}
        </p>
      )}
    </article>
  );
}

function save(bytes: Blob, path: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(bytes);
  link.download = path.split('/').at(-1)!;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}

function Files({ sandbox }: { readonly sandbox: string }) {
  const path = `/v1/sandboxes/${sandbox}/files`;
  const read = useRead(ListSandboxFilesResponseSchema, path, {}, { everyMs: 10_000 });
  const upload = useAct((api, file: File) =>
    api.call(SandboxFileSchema, 'POST', `${path}:upload`, { query: { path: file.name, size_bytes: file.size }, bytes: file }),
  );
  const download = useAct(async (api, file: SandboxFile) =>
    save(await (await api.send('GET', `${path}:download`, { query: { path: file.path } })).blob(), file.path),
  );
  const remove = useAct((api, file: SandboxFile) =>
    api.call(DeleteSandboxFileResponseSchema, 'DELETE', path, { query: { path: file.path } }),
  );
  const error = upload.error ?? download.error ?? remove.error;
  return (
    <section aria-label="Files">
      <h2>Files</h2>
      <label className="field">
        <span>Upload a file</span>
        <input type="file" onChange={({ target }) => target.files?.[0] && upload.mutate(target.files[0])} />
      </label>
      {error && <Failed error={error} />}
      <ReadList
        label="files"
        read={read}
        of={({ files }) => files}
        keyOf={(file) => file.path}
        columns={[
          { title: 'Download', cell: (file) => <ActButton act={download} input={file} text={file.path} /> },
          { title: 'Bytes', number: true, cell: ({ sizeBytes }) => sizeBytes.toLocaleString('en') },
          { title: 'Changed', cell: ({ modifyTime }) => <When at={modifyTime} /> },
          { title: 'Delete', cell: (file) => <ActButton act={remove} input={file} text={`Delete ${file.path}`} tone="danger" /> },
        ]}
        empty={<p>The working directory has no files.</p>}
      />
    </section>
  );
}
