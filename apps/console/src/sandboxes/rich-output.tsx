import { toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import type { RichOutput } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { useEffect, useState } from 'react';
import { Output } from '../ui/code.js';
import { told } from '../ui/text.js';

const TABLE = 'application/vnd.dataresource+json';
const ROWS_MAX = 100;

/** What a cell displayed: a table, a picture, or text. HTML is never shown as such. */
export function Rich({ output }: { readonly output: RichOutput }) {
  const table = output.json[TABLE];
  if (table) return <Table data={toJson(ValueSchema, table) as unknown as Resource} />;
  const [type, bytes] = Object.entries(output.binary)[0] ?? [];
  if (type !== undefined && bytes !== undefined) return <Picture type={type} parts={bytes as Uint8Array<ArrayBuffer>} />;
  const svg = output.text['image/svg+xml'];
  if (svg !== undefined) return <Picture type="image/svg+xml" parts={svg} />;
  return <Output text={output.text['text/plain'] ?? ''} label="Displayed value" />;
}

/** A picture by an address of this page. An SVG in it runs no scripts. */
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
  const names = schema.fields.map(({ name }) => name);
  return (
    <div className="scrolled" tabIndex={0} role="region" aria-label="Table that the code displayed">
      <table>
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {data.slice(0, ROWS_MAX).map((row, at) => (
            <tr key={at}>
              {names.map((name) => (
                <td key={name}>{told(row[name])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {data.length > ROWS_MAX && <p className="quiet">{data.length - ROWS_MAX} more rows are not shown.</p>}
    </div>
  );
}
