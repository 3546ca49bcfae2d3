import { type PromptSection, type Step, StepExplanationSchema, type StepRecord, StepSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { useRead } from '../api/client.js';
import { Code, Output } from '../ui/code.js';
import { Loaded } from '../ui/states.js';
import { LinkedTabs } from '../ui/tabs.js';
import { Badge, counted, Details } from '../ui/text.js';
import { placeOfRecord } from '../memory/places.js';
import { Link } from '../ui/router.js';

interface StepProps {
  readonly task: string;
  readonly step: string;
}

export function StepPanel({ task, step }: StepProps) {
  const tabs = [
    { id: 'outcome', title: 'Outcome', content: <Outcome task={task} step={step} /> },
    { id: 'prompt', title: 'Prompt', content: <Prompt task={task} step={step} /> },
  ];
  return (
    <section aria-label={`Step ${step}`}>
      <h2>{step}</h2>
      <LinkedTabs label="Views of the step" tabs={tabs} name="view" />
    </section>
  );
}

function Outcome({ task, step }: StepProps) {
  const read = useRead(StepSchema, `/v1/tasks/${task}:step`, { step });
  return <Loaded read={read}>{(detail) => <StepDetail detail={detail} />}</Loaded>;
}

function StepDetail({ detail }: { readonly detail: Step }) {
  const { text, code, tool, query, runs, hiddenRuns, records } = detail;
  const isEmpty = text === '' && code === '' && runs.length === 0 && records.length === 0 && hiddenRuns === 0;
  return (
    <>
      {tool !== '' && (
        <Details
          rows={[
            ['Tool', tool],
            ['Called with', <code key="query">{query}</code>],
          ]}
        />
      )}
      {code !== '' && <Code code={code} label="Code of the step" />}
      {text !== '' && <Output text={text} label="Text of the step" />}
      {runs.map((run, at) => (
        <div key={at}>
          <h3>
            {run.case === 0 ? `Run ${at + 1}` : `Public case ${run.case}`}{' '}
            <Badge tone={run.exit === 'ok' ? 'good' : 'bad'}>{run.exit}</Badge>
          </h3>
          {run.valueJson !== '' && <Output text={run.valueJson} label="Returned value" />}
          {run.stdout !== '' && <Output text={run.stdout} label="Standard output" />}
          {run.stderr !== '' && <Output text={run.stderr} label="Standard error" tone="bad" />}
        </div>
      ))}
      {hiddenRuns > 0 && <p className="quiet">{counted(hiddenRuns, 'run')} of hidden cases are not shown.</p>}
      <Records records={records} />
      {isEmpty && <p className="quiet">This step has no more than its line in the trace.</p>}
    </>
  );
}

function Prompt({ task, step }: StepProps) {
  const read = useRead(StepExplanationSchema, `/v1/tasks/${task}:explain`, { step });
  if (read.error?.code === 'NOT_FOUND' && read.data === undefined)
    return <p className="quiet">This step called no model, or its prompt is no longer stored.</p>;
  return (
    <Loaded read={read}>
      {({ sections, totalTokens }) => (
        <>
          <p className="quiet">
            {counted(sections.length, 'section')}, about {counted(totalTokens, 'token')}
          </p>
          {sections.map((section, at) => (
            <PromptPart key={at} section={section} isOpen={at === sections.length - 1} />
          ))}
        </>
      )}
    </Loaded>
  );
}

interface PartProps {
  readonly section: PromptSection;
  readonly isOpen: boolean;
}

const PromptPart = ({ section: { role, title, text, tokens, sources }, isOpen }: PartProps) => (
  <details open={isOpen}>
    <summary>
      {role} {title && `· ${title}`} <span className="quiet">· {counted(tokens, 'token')}</span>
      {sources.map((source) => (
        <Badge key={source}>{source}</Badge>
      ))}
    </summary>
    <Output text={text} label={`${role} ${title}`} />
  </details>
);

const EPISODIC = new Set(['transition', 'episode']);

const Records = ({ records }: { readonly records: readonly StepRecord[] }) =>
  records.map(({ kind, id, title, text }) => (
    <div key={`${kind} ${id}`} className="hit">
      <Badge>{kind}</Badge> <Link to={placeOfRecord(EPISODIC.has(kind) ? 'episodic' : 'semantic', kind, id)}>{title || id}</Link>
      <Output text={text} label={title || id} />
    </div>
  ));
