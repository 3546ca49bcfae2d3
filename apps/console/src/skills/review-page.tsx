import {
  ListSkillsResponseSchema,
  type Skill,
  type SkillReview,
  SkillReviewSchema,
  SkillSchema,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { useState } from 'react';
import { requestId, useAct, useRead } from '../api/client.js';
import { ActButton } from '../ui/button.js';
import { Code, Diff } from '../ui/code.js';
import { go, Link, type PageProps, useQueryValues } from '../ui/router.js';
import { Failed, Loaded } from '../ui/states.js';
import { Badge, counted, Details, firstLine, percent, Scripted, Section, When } from '../ui/text.js';
import { Evidence } from './evidence.js';
import { areTestsOpen, ownerOf, placeOfSkill, scopeWord, skillId, Status } from './skill-words.js';
import { type Column, ReadList, TextFilter } from '../ui/list.js';

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

export function ReviewListPage() {
  const { page, agent } = useQueryValues('page', 'agent');
  const query = { page_size: 50, page_token: page, agent, status: 'SKILL_STATUS_PENDING_REVIEW' };
  const read = useRead(ListSkillsResponseSchema, '/v1/skills', query, { everyMs: 5_000 });
  return (
    <>
      <h1>Review</h1>
      <div className="filters">
        <TextFilter name="agent" label="Agent" isSearch />
      </div>
      <ReadList
        label="skills that wait for review"
        read={read}
        of={({ skills }) => skills}
        keyOf={(skill) => placeOfSkill(skill, 'review', skill.version)}
        columns={COLUMNS}
        empty={<p>Nothing waits for review. A new skill waits here if its agent's approval mode is “review”, or if it is not trusted.</p>}
      />
    </>
  );
}

export function ReviewPage({ name }: PageProps) {
  const { agent, user, version } = useQueryValues('agent', 'user', 'version');
  const read = useRead(SkillReviewSchema, `/v1/skills/${name}:review`, { agent, user, version });
  return <Loaded read={read}>{(review) => (review.skill ? <Shown review={review} skill={review.skill} /> : null)}</Loaded>;
}

function Shown({ review, skill }: { readonly review: SkillReview; readonly skill: Skill }) {
  const { diff, similar, dependents } = review;
  const [from, to] = [diff?.fromVersion ? `version ${diff.fromVersion}, in use` : 'nothing', `version ${skill.version}`];
  const isOpen = areTestsOpen(skill);
  return (
    <>
      <h1>
        Review of {skillId(skill)}, version {skill.version} <Status status={skill.status} /> <Scripted when={skill.scripted} />
      </h1>
      <p>{skill.description}</p>
      <Details
        rows={[
          ['Readers', [scopeWord(skill.scope), skill.agent, skill.user].filter(Boolean).join(' · ')],
          ['Origin', [skill.origin, skill.model].filter(Boolean).join(' · ')],
          ['Not trusted', skill.untrusted.join('; ')],
          ['Callers', dependents.map((one) => `${one.name}@${one.version}`).join(', ') || 'none'],
          ['Digest', <code key="digest">{skill.digest.slice(0, 16)}…</code>],
        ]}
      />
      <Decide skill={skill} />
      <Section title={diff?.fromVersion ? `Code beside ${from}` : 'Code, a new skill'}>
        {diff?.fromVersion ? <Diff diff={diff.codeDiff} from={from} to={to} /> : <Code code={skill.code} label="Code of the skill" />}
      </Section>
      {diff?.fromVersion !== 0 && isOpen && (
        <Section title="Other fields">
          <Diff diff={diff?.fieldsDiff ?? ''} from={from} to={to} />
        </Section>
      )}
      <Section title="Evidence">
        <Evidence skill={skill} />
      </Section>
      <Section title="Tests">
        {isOpen ? (
          review.tests.map((test, at) => <Code key={test} code={testText(test)} label={`Test ${at + 1}`} />)
        ) : (
          <p className="quiet">{counted(skill.testCount, 'test')} made from cases of tasks; not shown.</p>
        )}
        {review.heldOutCount > 0 && <p className="quiet">{counted(review.heldOutCount, 'held-out test')} are never shown.</p>}
      </Section>
      <Section title="Similar skills">
        {similar.length === 0 && <p className="quiet">No active skill has a similar purpose.</p>}
        <ul>
          {similar.map(({ skill: other, similarity }) => (
            <li key={other!.name}>
              <Link to={placeOfSkill(other!)}>{skillId(other!)}</Link> · similarity {similarity.toFixed(2)} · {other!.description}
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

function testText(json: string): string {
  const test = JSON.parse(json) as { readonly kind: string; readonly setup?: string; readonly tests?: string };
  return test.kind === 'python' ? `${test.setup}${test.tests}` : JSON.stringify(test, null, 1);
}

/** Approves exactly the content that was shown, by its digest, or rejects it with a reason. */
function Decide({ skill }: { readonly skill: Skill }) {
  const [reason, setReason] = useState('');
  const decide = useAct(async (api, verb: 'approve' | 'reject') => {
    const told = verb === 'approve' ? { digest: skill.digest } : { reason };
    const body = { ...ownerOf(skill), version: skill.version, request_id: requestId(), ...told };
    await api.call(SkillSchema, 'POST', `/v1/skills/${skillId(skill)}:${verb}`, { body });
    go(placeOfSkill(skill, 'skills', skill.version));
  });
  return (
    <div className="note">
      <div className="buttons">
        <ActButton act={decide} input="approve" text="Approve" tone="primary" />
        <label className="field wide">
          <span>Reason for a rejection</span>
          <input value={reason} onChange={({ target }) => setReason(target.value)} />
        </label>
        <ActButton act={decide} input="reject" text="Reject" tone="danger" disabled={reason.trim() === ''} />
      </div>
      {decide.error && <Failed error={decide.error} />}
    </div>
  );
}
