import {
  ConsolidatedState,
  type ConsolidationRun,
  ConsolidationRunSchema,
  ConsolidationState,
  ListConsolidationRunsResponseSchema,
  UndoConsolidationResponseSchema,
} from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { useState } from 'react';
import { requestId, useAct, useRead } from '../api/client.js';
import { ActButton, Button } from '../ui/button.js';
import { type Column, List, ReadList } from '../ui/list.js';
import { go, Link, useQueryValue } from '../ui/router.js';
import { Failed, Loaded } from '../ui/states.js';
import { Badge, Details, Scripted, Section, submitting, When } from '../ui/text.js';
import { MemoryTabs } from './places.js';

const { DONE, FAILED, QUEUED, RUNNING } = ConsolidationState;
const wordOf = (word: string | undefined) => (word ?? 'unknown').toLowerCase();

export function ConsolidationPage() {
  const [run] = useQueryValue('run');
  const [agent, setAgent] = useState('');
  const [days, setDays] = useState('7');
  const start = useAct(async (api, isPlan: boolean) => {
    const body = { agent, days: Number(days), dry_run: isPlan, request_id: requestId() };
    const { name } = await api.call(ConsolidationRunSchema, 'POST', '/v1/consolidationRuns', { body });
    go(`/memory/consolidation?run=${name.split('/')[1]}`);
  });
  return (
    <>
      <MemoryTabs />
      <form className="filters" onSubmit={submitting(() => start.mutate(true))}>
        <label className="field">
          <span>Agent (empty: all)</span>
          <input value={agent} onChange={({ target }) => setAgent(target.value)} />
        </label>
        <label className="field">
          <span>Days</span>
          <input type="number" min={1} value={days} onChange={({ target }) => setDays(target.value)} />
        </label>
        <Button text="Plan only" disabled={start.isPending} />
        <ActButton act={start} input={false} text="Consolidate" tone="primary" />
      </form>
      {start.error && <Failed error={start.error} />}
      {run === '' ? (
        <Runs />
      ) : (
        <>
          <Link to="/memory/consolidation">All runs</Link>
          <Run key={run} id={run} />
        </>
      )}
    </>
  );
}

const COLUMNS: ReadonlyArray<Column<ConsolidationRun>> = [
  {
    title: 'Started',
    cell: ({ name, createTime }) => (
      <Link to={`/memory/consolidation?run=${name.split('/')[1]}`}>
        <When at={createTime} />
      </Link>
    ),
  },
  { title: 'Kind', cell: ({ name, dryRun }) => (dryRun ? 'plan' : name.includes('/nightly-') ? 'nightly' : 'asked') },
  { title: 'State', cell: ({ state }) => wordOf(ConsolidationState[state]) },
  { title: 'Episodes', number: true, cell: ({ episodesRead }) => episodesRead },
  { title: 'Facts added', number: true, cell: ({ factsAdded }) => factsAdded },
  { title: 'Skills proposed', number: true, cell: ({ skillsProposed }) => skillsProposed },
  { title: 'Error', prose: true, cell: ({ error }) => error },
];

function Runs() {
  const [page] = useQueryValue('page');
  const read = useRead(ListConsolidationRunsResponseSchema, '/v1/consolidationRuns', { page_token: page }, { everyMs: 5_000 });
  return (
    <ReadList
      label="runs"
      read={read}
      of={({ runs }) => runs}
      keyOf={({ name }) => name}
      columns={COLUMNS}
      empty={<p>No run yet. Consolidation turns recent episodes into facts and skills every night. A plan changes nothing.</p>}
    />
  );
}

const isGoingOn = ({ state }: ConsolidationRun) => state === QUEUED || state === RUNNING;

function Run({ id }: { readonly id: string }) {
  const read = useRead(
    ConsolidationRunSchema,
    `/v1/consolidationRuns/${id}`,
    {},
    { everyMs: (run) => run !== undefined && isGoingOn(run) && 1_000 },
  );
  return <Loaded read={read}>{(run) => <Shown run={run} />}</Loaded>;
}

function Shown({ run }: { readonly run: ConsolidationRun }) {
  const undo = useAct((api) =>
    api.call(UndoConsolidationResponseSchema, 'POST', `/v1/${run.name}:undo`, { body: { request_id: requestId() } }),
  );
  return (
    <>
      <h2>
        {run.dryRun ? 'Plan' : 'Run'}{' '}
        <Badge tone={isGoingOn(run) ? 'busy' : run.state === FAILED ? 'bad' : 'good'}>{wordOf(ConsolidationState[run.state])}</Badge>{' '}
        <Scripted when={run.scripted} />
      </h2>
      <Details
        rows={[
          ['Started', <When key="when" at={run.createTime} />],
          ['Episodes read', run.episodesRead],
          ['Facts added', run.factsAdded],
          ['Facts reinforced', run.factsReinforced],
          ['Skills proposed', run.skillsProposed],
          ['Model calls', run.modelCalls],
          ['Tokens', (run.inputTokens + run.outputTokens).toLocaleString('en')],
          ['Error', run.error],
        ]}
      />
      {!run.dryRun && run.state === DONE && <ActButton act={undo} input={null} text="Undo this run" tone="danger" />}
      {undo.error && <Failed error={undo.error} />}
      {undo.data?.agents.map(({ agent, undone, kept }) => (
        <p key={agent} className="note" role="status">
          {`${agent}: ${undone.length} undone`}
          {kept.length > 0 && `; kept: ${kept.join(', ')}`}
        </p>
      ))}
      <Section title={run.dryRun ? 'What would change' : 'What changed'}>
        {run.plan.length === 0 && (
          <p className="quiet">{isGoingOn(run) ? 'The plan is being made.' : 'Nothing, because there was nothing new to learn.'}</p>
        )}
        <ul>
          {run.plan.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      </Section>
      <List
        label="agents"
        items={run.agents}
        keyOf={({ agent }) => agent}
        nextPage={run.nextPageToken}
        columns={[
          { title: 'Agent', cell: ({ agent }) => agent },
          { title: 'State', cell: ({ state }) => wordOf(ConsolidatedState[state]) },
          { title: 'Episodes', number: true, cell: ({ episodesRead }) => episodesRead },
          { title: 'Facts added', number: true, cell: ({ factsAdded }) => factsAdded },
          { title: 'Skills proposed', number: true, cell: ({ skillsProposed }) => skillsProposed },
          { title: 'Reason', prose: true, cell: ({ reason }) => reason },
        ]}
        empty={<p>No agent has new episodes in these days.</p>}
      />
    </>
  );
}
