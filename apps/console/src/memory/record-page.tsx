import type { JsonObject } from '@bufbuild/protobuf';
import { ErasureReceiptSchema, type MemoryRecord, MemoryRecordSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { RevokeSourceResponseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { useState } from 'react';
import { requestId } from '../api/client.js';
import { useAct, useRead } from '../api/hooks.js';
import { Code, Output } from '../ui/code.js';
import { Modal } from '../ui/dialog.js';
import { Graph } from '../ui/graph.js';
import { go, type PageProps } from '../ui/router.js';
import { Failed, Loaded } from '../ui/states.js';
import { Badge, Details, Section, told, When } from '../ui/text.js';
import { sourcesOf } from './places.js';
import { titleOf } from './records-page.js';

/** A record, whole. Its name is "{layer}:{id}". */
export function MemoryRecordPage({ name }: PageProps) {
  const [layer = '', ...rest] = name.split(':');
  const id = rest.join(':');
  const read = useRead(MemoryRecordSchema, `/v1/memory/records/${layer}/${encodeURIComponent(id)}`);
  return (
    <Loaded read={read}>
      {(record) => (
        <>
          <h1>
            <Badge>{record.kind}</Badge> {titleOf(record)}
          </h1>
          <RecordHead record={record} />
          <Rests record={record} />
          <Fields fields={record.fields} />
        </>
      )}
    </Loaded>
  );
}

export const RecordHead = ({ record: { id, layer, agent, user, createTime } }: { readonly record: MemoryRecord }) => (
  <Details
    rows={[
      ['Id', <code key="id">{id}</code>],
      ['Layer', layer],
      ['Agent', agent],
      ['User', user],
      ['Made', <When key="when" at={createTime} />],
      ['', <Erase key="erase" id={id} layer={layer} agent={agent} user={user} />],
    ]}
  />
);

/** Tests are never shown here: some are made from hidden cases. */
const LEFT_OUT = new Set(['tests', 'held_out', 'wordings', 'scope', 'fact', 'id']);

function Fields({ fields }: { readonly fields: JsonObject | undefined }) {
  const shown = Object.entries(fields ?? {}).filter(([name, value]) => !LEFT_OUT.has(name) && value !== null && value !== '');
  return (
    <Section title="Fields">
      {shown.map(([name, value]) => (
        <div key={name}>
          <h3>{name.replaceAll('_', ' ')}</h3>
          {name === 'code' ? <Code code={told(value)} /> : <Output text={textOf(value)} label={name} />}
        </div>
      ))}
    </Section>
  );
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

/** What the record rests on. Reviewers also see what would be withdrawn with it. */
export function Rests({ record }: { readonly record: MemoryRecord }) {
  const source = record.kind === 'episode' ? `episodes/${told(record.fields?.['rollout_id'])}` : `${record.kind}s/${record.id}`;
  const isSource = ['episode', 'fact', 'document', 'conversation'].includes(record.kind);
  const body = { source, dry_run: true, reason: 'shown in the console' };
  const { data } = useRead(RevokeSourceResponseSchema, '/v1/skills:revokeSource', {}, { body, enabled: isSource });
  const onto = [
    ...(data?.skills ?? []).map(({ name, version, agent }) => ({
      title: `${name}@${version}`,
      to: `/skills/${name.slice('skills/'.length)}?agent=${encodeURIComponent(agent)}`,
    })),
    ...(data?.facts ?? []).filter((text) => text !== told(record.fields?.['fact'])).map((text) => ({ title: text, to: '' })),
  ];
  return <Graph label="What rests on what" from={sourcesOf(record.fields)} centre={titleOf(record)} onto={onto} />;
}

/** Erases one record for good, asked once more. */
function Erase({ id, layer, agent, user }: Pick<MemoryRecord, 'id' | 'layer' | 'agent' | 'user'>) {
  const [isOpen, setOpen] = useState(false);
  const erase = useAct(async (api) => {
    const query = { agent, user, request_id: requestId() };
    const receipt = await api.call(ErasureReceiptSchema, 'DELETE', `/v1/memory/records/${layer}/${encodeURIComponent(id)}`, { query });
    go(`/memory/erasure?receipt=${encodeURIComponent(receipt.id)}`);
  });
  return (
    <>
      <button type="button" className="danger" onClick={() => setOpen(true)}>
        Erase
      </button>
      <Modal title="Erase this record for good?" open={isOpen} onClose={() => setOpen(false)}>
        <p>No read finds it afterwards, and it can't be brought back. What was learned from it stays; the receipt names it.</p>
        <div className="buttons">
          <button type="button" className="danger" disabled={erase.isPending} onClick={() => erase.mutate(undefined)}>
            Erase
          </button>
          <button type="button" onClick={() => setOpen(false)}>
            Back
          </button>
        </div>
        {erase.error && <Failed error={erase.error} />}
      </Modal>
    </>
  );
}
