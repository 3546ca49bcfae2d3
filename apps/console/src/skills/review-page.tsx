import { type Skill, type SkillReview, SkillReviewSchema, SkillSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { useState } from 'react';
import { requestId } from '../api/client.js';
import { useAct, useRead } from '../api/hooks.js';
import { Code, Output } from '../ui/code.js';
import { Diff } from '../ui/diff.js';
import { go, Link, type PageProps, useQueryValue } from '../ui/router.js';
import { Failed, Loaded } from '../ui/states.js';
import { counted, Details, Scripted, Section } from '../ui/text.js';
import { Evidence } from './evidence.js';
import { areTestsOpen, ownerOf, placeOfSkill, scopeWord, skillId, Status } from './skill-words.js';

/** All that a reviewer needs to decide about a version. */
export function ReviewPage({ name }: PageProps) {
  const [agent] = useQueryValue('agent');
  const [user] = useQueryValue('user');
  const [version] = useQueryValue('version');
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
          review.tests.map((test, at) => <Output key={at} text={test} label={`Test ${at + 1}`} />)
        ) : (
          <p className="quiet">{counted(skill.testCount, 'test')} made from the cases of tasks; they are not shown.</p>
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
        <button type="button" className="primary" disabled={decide.isPending} onClick={() => decide.mutate('approve')}>
          Approve
        </button>
        <label className="field wide">
          <span>Reason of a rejection</span>
          <input value={reason} onChange={({ target }) => setReason(target.value)} />
        </label>
        <button
          type="button"
          className="danger"
          disabled={reason.trim() === '' || decide.isPending}
          onClick={() => decide.mutate('reject')}
        >
          Reject
        </button>
      </div>
      {decide.error && <Failed error={decide.error} />}
    </div>
  );
}
