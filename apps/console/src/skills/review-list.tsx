import { ListSkillsResponseSchema, type Skill } from '@etude/contracts/gen/etude/v1/skills_pb';
import { useRead } from '../api/hooks.js';
import { type Column, List, TextFilter } from '../ui/list.js';
import { Link, useQueryValue } from '../ui/router.js';
import { Loaded } from '../ui/states.js';
import { Badge, firstLine, percent, Scripted, When } from '../ui/text.js';
import { placeOfSkill, scopeWord, skillId } from './skill-words.js';

const COLUMNS: ReadonlyArray<Column<Skill>> = [
  {
    title: 'Skill',
    cell: (skill) => <Link to={placeOfSkill(skill, 'review', skill.version)}>{`${skillId(skill)}@${skill.version}`}</Link>,
  },
  { title: 'Description', prose: true, cell: ({ description }) => firstLine(description) },
  { title: 'Readers', cell: ({ scope, agent, user }) => [scopeWord(scope), agent, user].filter(Boolean).join(' · ') },
  {
    title: 'Origin',
    cell: ({ origin, scripted }) => (
      <>
        {origin} <Scripted when={scripted} />
      </>
    ),
  },
  { title: 'Confidence', number: true, cell: ({ proof }) => proof && percent(proof.confidence) },
  {
    title: 'Findings',
    cell: ({ proof, untrusted }) => (
      <>
        {(proof?.findings.length ?? 0) > 0 && <Badge tone="warn">{`${proof!.findings.length} findings`}</Badge>}
        {untrusted.length > 0 && <Badge tone="bad">not trusted</Badge>}
      </>
    ),
  },
  { title: 'Waits since', cell: ({ updateTime }) => <When at={updateTime} /> },
];

/** The skills that wait for a decision. */
export function ReviewListPage() {
  const [page] = useQueryValue('page');
  const [agent] = useQueryValue('agent');
  const query = { page_size: 50, page_token: page, agent, status: 'SKILL_STATUS_PENDING_REVIEW' };
  const read = useRead(ListSkillsResponseSchema, '/v1/skills', query, { everyMs: 5_000 });
  return (
    <>
      <h1>Review</h1>
      <div className="filters">
        <TextFilter name="agent" label="Agent" isSearch />
      </div>
      <Loaded read={read}>
        {({ skills, nextPageToken }) => (
          <List
            label="skills that wait for review"
            items={skills}
            keyOf={(skill) => placeOfSkill(skill, 'review', skill.version)}
            columns={COLUMNS}
            nextPage={nextPageToken}
            empty={
              <p>
                Nothing waits for review. New skills wait here where the agent's approval mode is “review”, and when they are not trusted.
              </p>
            }
          />
        )}
      </Loaded>
    </>
  );
}
