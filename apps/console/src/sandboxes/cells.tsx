import { type ExecuteEvent, ExecuteEventSchema, type ExecutionOutcome, type RichOutput } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { type ApiError, follow, requestId, useApi } from '../api/client.js';
import { toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { Output } from '../ui/code.js';
import { List } from '../ui/list.js';
import { told } from '../ui/text.js';

/** A piece of code that runs or has ended, with its results so far. */
export interface Cell {
  readonly id: string;
  readonly code: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly displays: readonly RichOutput[];
  readonly outcome: ExecutionOutcome | null;
  readonly error: ApiError | null;
}

const SHOWN_CHARS = 200_000;
const tail = (text: string) => (text.length > SHOWN_CHARS ? text.slice(-SHOWN_CHARS) : text);

function withEvent(cell: Cell, { event }: ExecuteEvent): Cell {
  if (event.case === 'stdout') return { ...cell, stdout: tail(cell.stdout + event.value) };
  if (event.case === 'stderr') return { ...cell, stderr: tail(cell.stderr + event.value) };
  if (event.case === 'display') return { ...cell, displays: [...cell.displays, event.value] };
  return event.case === 'result' ? { ...cell, outcome: event.value } : cell;
}

const STREAM = {
  schema: ExecuteEventSchema,
  verb: 'POST' as const,
  isLast: ({ event }: ExecuteEvent) => event.case === 'result',
};

/** The cells of a sandbox that this page has run. After a lost connection, the output of the running cell continues. */
export function useCells(sandbox: string) {
  const api = useApi();
  const client = useQueryClient();
  const [cells, setCells] = useState<readonly Cell[]>([]);
  const gone = useRef(new AbortController());
  useEffect(() => {
    gone.current = new AbortController();
    return () => gone.current.abort();
  }, [sandbox]);
  const run = useCallback(
    async (code: string) => {
      const id = requestId();
      const change = (next: (cell: Cell) => Cell) => setCells((all) => all.map((cell) => (cell.id === id ? next(cell) : cell)));
      setCells((all) => [...all, { id, code, stdout: '', stderr: '', displays: [], outcome: null, error: null }]);
      const ask = { body: { execution_id: id, code } };
      try {
        const { signal } = gone.current;
        for await (const event of follow(api, { ...STREAM, path: `/v1/sandboxes/${sandbox}:execute`, ask, signal }))
          change((cell) => withEvent(cell, event));
      } catch (error) {
        change((cell) => ({ ...cell, error: error as ApiError }));
      }
      void client.invalidateQueries();
    },
    [api, client, sandbox],
  );
  return { cells, run, isRunning: cells.some(({ outcome, error }) => outcome === null && error === null) };
}

const TABLE = 'application/vnd.dataresource+json';
const ROWS_MAX = 100;

/** Output that a cell displayed: a table, a picture, or text. HTML is never rendered. */
export function Rich({ output }: { readonly output: RichOutput }) {
  const table = output.json[TABLE];
  if (table) return <Table data={toJson(ValueSchema, table) as unknown as Resource} />;
  const [type, bytes] = Object.entries(output.binary)[0] ?? [];
  if (type !== undefined && bytes !== undefined) return <Picture type={type} parts={bytes as Uint8Array<ArrayBuffer>} />;
  const svg = output.text['image/svg+xml'];
  if (svg !== undefined) return <Picture type="image/svg+xml" parts={svg} />;
  return <Output text={output.text['text/plain'] ?? ''} label="Displayed value" />;
}

/** A picture in an `img` element, in which an SVG can't run scripts. */
function Picture({ type, parts }: { readonly type: string; readonly parts: Uint8Array<ArrayBuffer> | string }) {
  const [address, setAddress] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([parts], { type }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [type, parts]);
  return <figure>{address !== '' && <img src={address} alt="Picture that the code displayed" />}</figure>;
}

interface Resource {
  readonly schema: { readonly fields: ReadonlyArray<{ readonly name: string }> };
  readonly data: ReadonlyArray<Readonly<Record<string, unknown>>>;
}

function Table({ data: { schema, data } }: { readonly data: Resource }) {
  const columns = schema.fields.map(({ name }) => ({ title: name, cell: ({ row }: { row: Resource['data'][number] }) => told(row[name]) }));
  const items = data.slice(0, ROWS_MAX).map((row, at) => ({ row, at }));
  return (
    <>
      <List label="Table that the code displayed" items={items} keyOf={({ at }) => `${at}`} columns={columns} empty="No rows." />
      {data.length > ROWS_MAX && <p className="quiet">{data.length - ROWS_MAX} more rows are not shown.</p>}
    </>
  );
}
