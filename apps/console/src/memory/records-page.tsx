import { ListMemoryResponseSchema, type MemoryRecord, MemoryStatsSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { useRead } from '../api/hooks.js';
import { ChoiceFilter, type Column, ReadList, TextFilter } from '../ui/list.js';
import { Link, useQueryValues } from '../ui/router.js';
import { counted, firstLine, told, When } from '../ui/text.js';
import { MemoryTabs } from './places.js';
import { placeOfRecord } from './places.js';

const KINDS = ['fact', 'episode', 'skill', 'document', 'conversation', 'transition', 'summary', 'reflection', 'chunk', 'turn'];

/** The text by which people know a record. */
export function titleOf({ id, fields }: Pick<MemoryRecord, 'id' | 'fields'>): string {
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
        <TextFilter name="user" label="User" />
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
        empty={<p>Memory holds no such record. Choose another kind, or clear the filters.</p>}
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
