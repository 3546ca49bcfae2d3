import type { JsonObject } from '@bufbuild/protobuf';
import {
  ErasureReceiptSchema,
  type FactDecision,
  ListFactHistoryResponseSchema,
  ListMemoryResponseSchema,
  type MemoryRecord,
  MemoryRecordSchema,
  MemoryStatsSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { RevokeSourceResponseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { useState } from 'react';
import { requestId, useAct, useRead } from '../api/client.js';
import { type Act, ActButton, Button } from '../ui/button.js';
import { Code, Output } from '../ui/code.js';
import { Confirm } from '../ui/dialog.js';
import { Graph } from '../ui/graph.js';
import { go, Link, type PageProps, useQueryValues } from '../ui/router.js';
import { Empty, Failed, Loaded } from '../ui/states.js';
import { Badge, counted, Details, firstLine, Section, told, When } from '../ui/text.js';
import { MemoryTabs, placeOfRecord, sourcesOf, UserFilter } from './places.js';
import { ChoiceFilter, type Column, ReadList, TextFilter } from '../ui/list.js';

const KINDS = ['fact', 'episode', 'skill', 'document', 'conversation', 'transition', 'summary', 'reflection', 'chunk', 'turn'];

function titleOf({ id, fields }: Pick<MemoryRecord, 'id' | 'fields'>): string {
  for (const name of ['fact', 'title', 'name', 'prompt', 'text', 'summary']) {
    const value = fields?.[name];
    if (typeof value === 'string' && value !== '') return firstLine(value);
  }
  return id;
}

const COLUMNS: ReadonlyArray<Column<MemoryRecord>> = [
  {
    title: 'Record',
    prose: true,
    cell: (record) => <Link to={placeOfRecord(record.layer, record.kind, record.id, record.agent)}>{titleOf(record)}</Link>,
  },
  { title: 'Category', cell: ({ fields }) => told(fields?.['category']) },
  { title: 'Source', cell: ({ fields }) => told(fields?.['source']) },
  { title: 'Agent', cell: ({ agent }) => agent },
  { title: 'User', cell: ({ user }) => user },
  { title: 'Made', cell: ({ createTime }) => <When at={createTime} /> },
];

export function MemoryRecordsPage() {
  const { kind: chosen, agent, user, page, all } = useQueryValues('kind', 'agent', 'user', 'page', 'all');
  const query = { kind: chosen || 'fact', agent, user, all: all === 'yes', page_size: 50, page_token: page };
  const read = useRead(ListMemoryResponseSchema, '/v1/memory/records', query);
  return (
    <>
      <MemoryTabs />
      <Stats />
      <div className="filters">
        <ChoiceFilter name="kind" label="Kind" options={KINDS.map((kind, at) => [at === 0 ? '' : kind, kind] as const)} />
        <TextFilter name="agent" label="Agent" />
        <UserFilter />
        <ChoiceFilter
          name="all"
          label="Archived and replaced"
          options={[
            ['', 'left out'],
            ['yes', 'shown'],
          ]}
        />
      </div>
      <ReadList
        label="records"
        read={read}
        of={({ records }) => records}
        keyOf={({ id }) => id}
        columns={COLUMNS}
        empty={<p>Memory has no record like this. Choose another kind, or clear the filters.</p>}
      />
    </>
  );
}

function Stats() {
  const { data } = useRead(MemoryStatsSchema, '/v1/memory/stats');
  if (data === undefined) return null;
  const count = (kind: string) => Number(data.layers.find((layer) => layer.kind === kind)?.records ?? 0n);
  const parts = [
    counted(count('fact'), 'fact'),
    counted(count('episode'), 'episode'),
    counted(count('skill'), 'version of skills', 'versions of skills'),
    counted(count('document'), 'document'),
    `${data.adapter}, ${data.embeddingModel}`,
  ];
  const waiting = data.settling?.unsettled ?? 0n;
  return (
    <p className="quiet">
      {parts.join(' · ')}
      {waiting > 0n && ` · facts to compare: ${waiting}`}
      {data.settling?.failure && ` · the last comparison failed: ${data.settling.failure}`}
    </p>
  );
}

/** One record with all its fields. The page's name is "{layer}:{id}". */
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

const RecordHead = ({ record: { id, layer, agent, user, createTime } }: { readonly record: MemoryRecord }) => (
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

/** Fields that are not listed. Tests are among them, because some are made from hidden cases. */
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

/** A graph of the record's sources. For reviewers, it also has what is based on the record and would be withdrawn with it. */
function Rests({ record }: { readonly record: MemoryRecord }) {
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
  return <Graph label="Sources, and what is based on them" from={sourcesOf(record.fields)} centre={titleOf(record)} onto={onto} />;
}

function Erase({ id, layer, agent, user }: Pick<MemoryRecord, 'id' | 'layer' | 'agent' | 'user'>) {
  const [isOpen, setOpen] = useState(false);
  const erase = useAct(async (api) => {
    const query = { agent, user, request_id: requestId() };
    const receipt = await api.call(ErasureReceiptSchema, 'DELETE', `/v1/memory/records/${layer}/${encodeURIComponent(id)}`, { query });
    go(`/memory/erasure?receipt=${encodeURIComponent(receipt.id)}`);
  });
  return (
    <>
      <Button text="Erase" tone="danger" onPress={() => setOpen(true)} />
      <Confirm
        title="Permanently erase this record?"
        open={isOpen}
        onClose={() => setOpen(false)}
        yes="Erase"
        act={erase}
        onYes={() => erase.mutate(undefined)}
      >
        <p>It can't be brought back. Records that were learned from it stay, and the receipt names them.</p>
      </Confirm>
    </>
  );
}

const factOf = ({ fields }: MemoryRecord) => told(fields?.['fact']);

const VERDICTS: Readonly<Record<string, string>> = {
  same: 'say the same',
  replaces: 'the newer replaces the older',
  differs: 'both are true',
};

export function FactPage({ name: id }: PageProps) {
  const path = `/v1/memory/facts/${encodeURIComponent(id)}`;
  // Facts are compared some time after they were stored.
  const read = useRead(ListFactHistoryResponseSchema, `${path}/history`, {}, { everyMs: 3_000 });
  const undo = useAct((api, other: string) => api.call(ListFactHistoryResponseSchema, 'POST', `${path}:undo`, { body: { other } }));
  return (
    <Loaded read={read}>
      {({ facts, decisions }) => {
        const fact = facts.find((one) => one.id === id) ?? facts[0];
        if (fact === undefined) return <Empty>This fact is gone.</Empty>;
        return (
          <>
            <h1>
              <Badge>fact</Badge> {factOf(fact)}
            </h1>
            <RecordHead record={fact} />
            <FactFields fact={fact} />
            <Rests record={fact} />
            <Section title="History">
              <ol>
                {facts.map((one) => (
                  <li key={one.id}>
                    <When at={one.createTime} />: {one.id === id ? factOf(one) : <Link to={`/memory/facts/${one.id}`}>{factOf(one)}</Link>}
                  </li>
                ))}
              </ol>
            </Section>
            <Section title="Decisions">
              {decisions.length === 0 && <p className="quiet">This fact was not compared with similar ones yet.</p>}
              {decisions.toReversed().map((decision) => (
                <Decision key={`${decision.newer} ${decision.older}`} decision={decision} id={id} undo={undo} />
              ))}
              {undo.error && <Failed error={undo.error} />}
            </Section>
          </>
        );
      }}
    </Loaded>
  );
}

const FactFields = ({ fact: { fields = {} } }: { readonly fact: MemoryRecord }) => (
  <Details
    rows={['category', 'subject', 'confidence', 'source', 'support', 'access_count'].map((name) => [
      name.replace('_', ' '),
      told(fields[name]),
    ])}
  />
);

interface DecisionProps {
  readonly decision: FactDecision;
  /** Id of the fact that the page shows. */
  readonly id: string;
  /** Undoes the decision about this fact and the fact with the given id. */
  readonly undo: Act<string>;
}

function Decision({ decision, id, undo }: DecisionProps) {
  const { newer, newerText, older, olderText, verdict, reason, by, decideTime } = decision;
  return (
    <div className="hit">
      <p>
        <Badge tone={verdict === 'replaces' ? 'warn' : 'plain'}>{VERDICTS[verdict] ?? verdict}</Badge> <When at={decideTime} /> by {by}
      </p>
      <p>Newer: {newerText}</p>
      <p>Older: {olderText || 'deleted since'}</p>
      {reason !== '' && <p className="quiet">{reason}</p>}
      <ActButton act={undo} input={newer === id ? older : newer} text="Undo this decision" />
    </div>
  );
}
