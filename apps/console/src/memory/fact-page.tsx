import { type FactDecision, ListFactHistoryResponseSchema, type MemoryRecord } from '@etude/contracts/gen/etude/v1/memory_pb';
import { useAct, useRead } from '../api/hooks.js';
import { Link, type PageProps } from '../ui/router.js';
import { Empty, Failed, Loaded } from '../ui/states.js';
import { Badge, Details, Section, told, When } from '../ui/text.js';
import { RecordHead, Rests } from './record-page.js';

const textOf = ({ fields }: MemoryRecord) => told(fields?.['fact']);

const VERDICTS: Readonly<Record<string, string>> = {
  same: 'say the same',
  replaces: 'the newer replaces the older',
  differs: 'both are true',
};

/** A fact, those that it replaced, and what was decided about them. */
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
              <Badge>fact</Badge> {textOf(fact)}
            </h1>
            <RecordHead record={fact} />
            <FactFields fact={fact} />
            <Rests record={fact} />
            <Section title="History">
              <ol>
                {facts.map((one) => (
                  <li key={one.id}>
                    <When at={one.createTime} />: {one.id === id ? textOf(one) : <Link to={`/memory/facts/${one.id}`}>{textOf(one)}</Link>}
                  </li>
                ))}
              </ol>
            </Section>
            <Section title="Decisions">
              {decisions.length === 0 && <p className="quiet">No fact near this one was compared with it yet.</p>}
              {decisions.toReversed().map((decision) => (
                <Decision
                  key={`${decision.newer} ${decision.older}`}
                  decision={decision}
                  id={id}
                  onUndo={undo.mutate}
                  isBusy={undo.isPending}
                />
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
  /** The fact that is shown. */
  readonly id: string;
  readonly onUndo: (other: string) => void;
  readonly isBusy: boolean;
}

function Decision({ decision, id, onUndo, isBusy }: DecisionProps) {
  const { newer, newerText, older, olderText, verdict, reason, by, decideTime } = decision;
  return (
    <div className="hit">
      <p>
        <Badge tone={verdict === 'replaces' ? 'warn' : 'plain'}>{VERDICTS[verdict] ?? verdict}</Badge> <When at={decideTime} /> by {by}
      </p>
      <p>Newer: {newerText}</p>
      <p>Older: {olderText || 'deleted since'}</p>
      {reason !== '' && <p className="quiet">{reason}</p>}
      <button type="button" disabled={isBusy} onClick={() => onUndo(newer === id ? older : newer)}>
        Undo this decision
      </button>
    </div>
  );
}
