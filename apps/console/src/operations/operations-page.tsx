import { MemoryStatsSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import {
  ListQueuesResponseSchema,
  ListTenantsResponseSchema,
  type Queue,
  type SandboxController,
  type Tenant,
} from '@etude/contracts/gen/etude/v1/queues_pb';
import { type ModelSpend, UsageReportSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { useRead } from '../api/client.js';
import { ChoiceFilter, type Column, List, ReadList, TextFilter } from '../ui/list.js';
import { Link, useQueryValue, useQueryValues } from '../ui/router.js';
import { Loaded } from '../ui/states.js';
import { Badge, Details, duration, Section } from '../ui/text.js';

export function OperationsPage() {
  return (
    <>
      <h1>Operations</h1>
      <Section title="Queues">
        <Queues />
      </Section>
      <Section title="Tenants">
        <Tenants />
      </Section>
      <Section title="Memory">
        <MemoryState />
      </Section>
      <Section title="Model calls">
        <Spend />
      </Section>
    </>
  );
}

const QUEUE_COLUMNS: ReadonlyArray<Column<Queue>> = [
  { title: 'Queue', cell: ({ name }) => <Link to={`/operations/${name}`}>{name}</Link> },
  { title: 'Waiting', number: true, cell: ({ waiting }) => waiting },
  { title: 'Active', number: true, cell: ({ active }) => active },
  { title: 'Delayed', number: true, cell: ({ delayed }) => delayed },
  { title: 'Dead', number: true, cell: ({ dead }) => (dead > 0 ? <Badge tone="bad">{dead}</Badge> : 0) },
  { title: 'Workers', number: true, cell: ({ workers }) => (workers === 0 ? <Badge tone="warn">0</Badge> : workers) },
  { title: 'Oldest waits', number: true, cell: ({ oldestWaitingMs }) => (oldestWaitingMs > 0n ? duration(Number(oldestWaitingMs)) : '') },
];

const POOL_COLUMNS: ReadonlyArray<Column<SandboxController>> = [
  { title: 'Sandbox controller', cell: ({ id }) => id },
  { title: 'Ready', number: true, cell: ({ warm }) => warm },
  { title: 'Claims that wait', number: true, cell: ({ claimsWaiting: n }) => (n > 0 ? <Badge tone="warn">{n}</Badge> : 0) },
  { title: 'Open sessions', number: true, cell: ({ sessions, sessionsMax }) => within(sessions, sessionsMax) },
];

function Queues() {
  const read = useRead(ListQueuesResponseSchema, '/v1/queues', {}, { everyMs: 3_000 });
  return (
    <Loaded read={read}>
      {({ queues, sandboxControllers }) => (
        <>
          <List label="queues" items={queues} keyOf={({ name }) => name} columns={QUEUE_COLUMNS} empty={<p>There are no queues.</p>} />
          <h3>Pool of sandboxes</h3>
          <List
            label="sandbox controllers"
            items={sandboxControllers}
            keyOf={({ id }) => id}
            columns={POOL_COLUMNS}
            empty={<p>No sandbox controller runs. Code waits until one runs.</p>}
          />
        </>
      )}
    </Loaded>
  );
}

/** What is used, and the limit unless it is 0 (no limit). */
const within = (used: number | bigint, limit: number | bigint | undefined) =>
  `${used.toLocaleString('en')}${limit ? ` of ${limit.toLocaleString('en')}` : ''}`;

const TENANT_COLUMNS: ReadonlyArray<Column<Tenant>> = [
  { title: 'Tenant', cell: ({ name }) => name },
  { title: 'Weight', number: true, cell: ({ limits }) => limits?.weight },
  { title: 'Waiting', number: true, cell: ({ waiting }) => waiting },
  { title: 'Unfinished tasks', number: true, cell: ({ waiting, running, limits }) => within(waiting + running, limits?.tasks) },
  { title: 'Sandboxes', number: true, cell: ({ sandboxes, limits }) => within(sandboxes, limits?.sandboxes) },
  { title: 'Tokens today', number: true, cell: ({ tokensToday, limits }) => within(tokensToday, limits?.tokensPerDay) },
  { title: 'US dollars today', number: true, cell: ({ usdToday, limits }) => within(usdToday, limits?.usdPerDay) },
  { title: 'Refused today', number: true, cell: ({ refusedToday }) => within(refusedToday, 0) },
];

function Tenants() {
  const [page] = useQueryValue('page');
  const read = useRead(ListTenantsResponseSchema, '/v1/tenants', { page_size: 50, page_token: page }, { everyMs: 5_000 });
  return (
    <ReadList
      label="tenants"
      read={read}
      of={({ tenants }) => tenants}
      keyOf={({ name }) => name}
      columns={TENANT_COLUMNS}
      empty={<p>No tenant used anything today.</p>}
    />
  );
}

function MemoryState() {
  const read = useRead(MemoryStatsSchema, '/v1/memory/stats', {}, { everyMs: 15_000 });
  return (
    <Loaded read={read}>
      {({ adapter, embeddingModel, diskBytes, settling }) => (
        <Details
          rows={[
            ['Store', adapter],
            ['Embedder', embeddingModel],
            ['On disk', diskBytes > 0n && `${Math.round(Number(diskBytes) / 1024).toLocaleString('en')} KiB`],
            ['Facts to compare', String(settling?.unsettled ?? 0n)],
            ['Conversations to read', String(settling?.unreadConversations ?? 0n)],
            ['Model calls to compare, today', String(settling?.modelCallsToday ?? 0n)],
            ['Last failure', settling?.failure],
          ]}
        />
      )}
    </Loaded>
  );
}

const DAYS = ['', '30', '90', '400'].map((days) => [days, days || '7'] as const);

const tokensOf = ({ inputTokens, outputTokens }: ModelSpend) => Number(inputTokens + outputTokens);

const SPEND_COLUMNS: ReadonlyArray<Column<ModelSpend>> = [
  { title: 'Day', cell: ({ day }) => day },
  { title: 'Agent', cell: ({ agent }) => agent },
  { title: 'Purpose', cell: ({ purpose }) => purpose },
  { title: 'Calls', number: true, cell: ({ modelCalls }) => modelCalls.toLocaleString('en') },
  { title: 'Tokens', number: true, cell: (row) => tokensOf(row).toLocaleString('en') },
  { title: 'US dollars', number: true, cell: ({ costUsd }) => costUsd.toFixed(4) },
];

function Spend() {
  const { days, agent } = useQueryValues('days', 'agent');
  const read = useRead(UsageReportSchema, '/v1/tasks:usage', { days: days || 7, agent });
  return (
    <>
      <div className="filters">
        <ChoiceFilter name="days" label="Days" options={DAYS} />
        <TextFilter name="agent" label="Agent" isSearch />
      </div>
      <Loaded read={read}>
        {({ rows, tokensPerDay, usdPerDay }) => (
          <>
            <Details
              rows={[
                ['Tokens per day at most', tokensPerDay > 0n ? tokensPerDay.toLocaleString('en') : 'no limit'],
                ['US dollars per day at most', usdPerDay > 0 ? usdPerDay : 'no limit'],
              ]}
            />
            <List
              label="model calls"
              items={rows}
              keyOf={({ day, agent: one, purpose }) => `${day} ${one} ${purpose}`}
              columns={SPEND_COLUMNS}
              empty={<p>No model was called in these days.</p>}
            />
          </>
        )}
      </Loaded>
    </>
  );
}
