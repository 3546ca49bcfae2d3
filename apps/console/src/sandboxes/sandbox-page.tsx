import { CancelExecutionResponseSchema, type Sandbox, SandboxSchema, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { type FormEvent, type KeyboardEvent, useState } from 'react';
import { useAct, useRead } from '../api/hooks.js';
import { Code, Output } from '../ui/code.js';
import type { PageProps } from '../ui/router.js';
import { Failed, Loaded } from '../ui/states.js';
import { Badge, Details, duration, When } from '../ui/text.js';
import { Files } from './files.js';
import { Rich } from './rich-output.js';
import { idOf, SandboxBadge } from './sandbox-list.js';
import { type Cell, useCells } from './use-cells.js';

/** A sandbox as a notebook: cells with what they print while they run, and files. */
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
          <button type="button" disabled={renew.isPending} onClick={() => renew.mutate(undefined)}>
            Half an hour more
          </button>
          <button type="button" className="danger" disabled={close.isPending} onClick={() => close.mutate(undefined)}>
            End it
          </button>
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
  const submit = (event: FormEvent) => {
    event.preventDefault();
    run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run();
  };
  return (
    <form className="cell" onSubmit={submit}>
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
      <button type="submit" className="primary" disabled={code.trim() === '' || isRunning}>
        {isRunning ? 'Running…' : 'Run'}
      </button>
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
      {isRunning && (
        <button type="button" className="danger" onClick={() => stop.mutate(undefined)}>
          Stop
        </button>
      )}
      {outcome && (
        <p>
          <Badge tone={outcome.exit === 'ok' ? 'good' : 'bad'}>{outcome.exit}</Badge>{' '}
          <span className="quiet">{duration(Number(outcome.wall?.seconds ?? 0n) * 1_000 + (outcome.wall?.nanos ?? 0) / 1e6)}</span>
          {outcome.stateLost && ' The interpreter was restarted: names are lost, files are kept.'}
        </p>
      )}
    </article>
  );
}
