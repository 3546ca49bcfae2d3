import type { Skill, SkillFinding, SkillLikeness } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Link } from '../ui/router.js';
import { Badge, Details, percent, When } from '../ui/text.js';
import { placeOfSkill } from './skill-words.js';

export function Evidence({ skill: { proof, evidence, nondeterministic } }: { readonly skill: Skill }) {
  if (!proof) return <p className="quiet">This version was not verified yet.</p>;
  return (
    <>
      <Details
        rows={[
          ['Verified', <When key="when" at={proof.verifyTime} />],
          ['Confidence', percent(proof.confidence)],
          ['Tests passed', proof.testsPassed],
          ['Held-out tests passed', proof.heldOutPassed],
          ['Mutants noticed', `${proof.mutantsNoticed} of ${proof.mutantsMade}`],
          ['Generated inputs answered', proof.generatedAnswers || ''],
          ['Same input, other output', nondeterministic && 'yes'],
          ['Signed by', proof.keyId],
          ['Still passes the tests of', proof.kept.map(({ name, version }) => `${name.replace('skills/', '')}@${version}`).join(', ')],
        ]}
      />
      <ul>
        {evidence.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      <Findings findings={proof.findings} />
      <Alike alike={proof.alike} />
    </>
  );
}

export function Findings({ findings }: { readonly findings: readonly SkillFinding[] }) {
  if (findings.length === 0) return <p className="quiet">The analysers found nothing.</p>;
  return (
    <ul>
      {findings.map(({ analyser, rule, severity, line, message }) => (
        <li key={`${analyser} ${rule} ${line}`}>
          <Badge tone={severity === 'error' ? 'bad' : severity === 'warning' ? 'warn' : 'plain'}>{severity}</Badge>{' '}
          {line > 0 && `line ${line}: `}
          {message} <span className="quiet">{`${analyser} ${rule}`}</span>
        </li>
      ))}
    </ul>
  );
}

function Alike({ alike }: { readonly alike: readonly SkillLikeness[] }) {
  if (alike.length === 0) return null;
  return (
    <>
      <h3>Skills with a similar purpose</h3>
      <ul>
        {alike.map(({ name, agent, version, similarity, passesTheirs, theyPass }) => (
          <li key={`${name} ${agent}`}>
            <Link to={placeOfSkill({ name, agent, user: '' })}>{`${name}@${version}`}</Link> · similarity {similarity.toFixed(2)} ·{' '}
            {`this skill ${passesTheirs ? 'passes' : 'fails'} its tests · it ${theyPass ? 'passes' : 'fails'} the tests of this skill`}
          </li>
        ))}
      </ul>
    </>
  );
}
