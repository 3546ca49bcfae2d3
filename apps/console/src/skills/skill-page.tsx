import {
  DiffSkillResponseSchema,
  ListSkillVersionsResponseSchema,
  type Skill,
  type SkillParameter,
  SkillReviewSchema,
  SkillSchema,
  SkillStatus,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { requestId, useAct, useRead } from '../api/client.js';
import { Button } from '../ui/button.js';
import { Code, Diff, Output } from '../ui/code.js';
import { hrefWith, Link, type PageProps, useQueryValue, useQueryValues } from '../ui/router.js';
import { Loaded } from '../ui/states.js';
import { LinkedTabs } from '../ui/tabs.js';
import { Badge, Details, Scripted, When } from '../ui/text.js';
import { Evidence } from './evidence.js';
import { NUMBERS, ownerOf, placeOfSkill, scopeWord, skillId, Status, statusWord } from './skill-words.js';
import { TrySkill } from './try-skill.js';
import { type Column, List, ReadList } from '../ui/list.js';
import { useState } from 'react';
import { Confirm } from '../ui/dialog.js';

export function SkillPage({ name }: PageProps) {
  const { agent, user, version } = useQueryValues('agent', 'user', 'version');
  const read = useRead(SkillSchema, `/v1/skills/${name}`, { agent, user, version });
  return <Loaded read={read}>{(skill) => <Shown skill={skill} />}</Loaded>;
}

function Shown({ skill }: { readonly skill: Skill }) {
  const { displayName, status, statusReason, scripted, version } = skill;
  const tabs = [
    { id: 'code', title: 'Code', content: <Contract skill={skill} /> },
    { id: 'evidence', title: 'Evidence', content: <Evidence skill={skill} /> },
    { id: 'versions', title: 'Versions', content: <Versions skill={skill} /> },
    { id: 'uses', title: 'Uses', content: <Uses skill={skill} /> },
    { id: 'try', title: 'Try it', content: <TrySkill skill={skill} /> },
  ];
  return (
    <>
      <h1>
        {displayName || skillId(skill)} <Status status={status} /> <Scripted when={scripted} />
      </h1>
      <p>{skill.description}</p>
      {status === SkillStatus.PENDING_REVIEW && (
        <p>
          <Link to={placeOfSkill(skill, 'review', version)}>Review this version</Link>
        </p>
      )}
      {statusReason !== '' && <p className="quiet">{statusReason}</p>}
      <Details
        rows={[
          ['Version', version],
          ['Readers', [scopeWord(skill.scope), skill.agent, skill.user].filter(Boolean).join(' · ')],
          ...NUMBERS.map(([title, of]) => [title, String(of(skill))] as const),
          ['Last use', skill.lastUseTime && <When key="when" at={skill.lastUseTime} />],
        ]}
      />
      <SkillDecisions skill={skill} />
      <LinkedTabs label="Parts of the skill" tabs={tabs} />
    </>
  );
}

const PARAMETERS: ReadonlyArray<Column<SkillParameter>> = [
  { title: 'Parameter', cell: ({ name }) => <code>{name}</code> },
  { title: 'Type', cell: ({ type }) => <code>{type}</code> },
  { title: 'Required', cell: ({ required }) => (required ? 'yes' : 'no') },
  { title: 'Description', prose: true, cell: ({ description }) => description },
];

function Contract({ skill }: { readonly skill: Skill }) {
  const { parameters, dependencies, packages, tags, examplePrompts, sources } = skill;
  return (
    <>
      <Code code={skill.code} label="Code of the skill" />
      {parameters.length > 0 && <List label="parameters" items={parameters} keyOf={({ name }) => name} columns={PARAMETERS} empty={null} />}
      <Details
        rows={[
          ['Kind', skill.kind],
          ['Entry point', skill.entryPoint && <code key="entry">{skill.entryPoint}</code>],
          ['Category', skill.category],
          ['Tags', tags.length > 0 && tags.map((tag) => <Badge key={tag}>{tag}</Badge>)],
          ['Calls', dependencies.length > 0 && dependencies.map(({ name, version }) => <Badge key={name}>{`${name}@${version}`}</Badge>)],
          ['Packages', packages.join(', ')],
          ['Example prompts', examplePrompts.join(' · ')],
          ['Origin', [skill.origin, skill.model].filter(Boolean).join(' · ')],
          ['Sources', sources.length > 0 && sources.map((source) => <Source key={source} source={source} />)],
          ['Not trusted', skill.untrusted.join('; ')],
          ['Digest', <code key="digest">{skill.digest}</code>],
        ]}
      />
    </>
  );
}

const Source = ({ source }: { readonly source: string }) =>
  source.startsWith('tasks/') ? <Link to={`/${source}`}>{source}</Link> : <span>{source}</span>;

function Callers({ skill }: { readonly skill: Skill }) {
  const { data } = useRead(SkillReviewSchema, `/v1/skills/${skillId(skill)}:review`, { ...ownerOf(skill), version: skill.version });
  if (data === undefined) return null;
  const callers = data.dependents.map(({ name, version }) => (
    <li key={name}>
      <Link to={placeOfSkill({ name, agent: skill.agent, user: skill.user })}>{`${name}@${version}`}</Link>
    </li>
  ));
  return (
    <>
      <h3>Callers</h3>
      {callers.length === 0 ? <p className="quiet">No skill calls this one.</p> : <ul>{callers}</ul>}
    </>
  );
}

function Uses({ skill }: { readonly skill: Skill }) {
  const read = useRead(ListSkillVersionsResponseSchema, `/v1/skills/${skillId(skill)}/versions`, { agent: skill.agent, user: skill.user });
  return (
    <Loaded read={read}>
      {({ skills }) => (
        <>
          {skill.failures.length === 0 && <p className="quiet">No recent use of this version failed.</p>}
          {skill.failures.map(({ time, input, error }, at) => (
            <div key={at} className="hit">
              <When at={time} />
              <Output text={input} label="Arguments" />
              <Output text={error} label="Error" tone="bad" />
            </div>
          ))}
          <Callers skill={skill} />
          <h3>History</h3>
          <ul>
            {skills.flatMap((one) =>
              one.history.map(({ time, by, from, to, reason }, at) => (
                <li key={`${one.version} ${at}`}>
                  <When at={time} />: version {one.version} {from === SkillStatus.UNSPECIFIED ? 'began as' : `from ${statusWord(from)} to`}{' '}
                  {statusWord(to)} by {by}
                  {reason && `: ${reason}`}
                </li>
              )),
            )}
          </ul>
        </>
      )}
    </Loaded>
  );
}

function Versions({ skill }: { readonly skill: Skill }) {
  const [chosen] = useQueryValue('to');
  const to = Number(chosen) || skill.version;
  const path = `/v1/skills/${skillId(skill)}`;
  const read = useRead(ListSkillVersionsResponseSchema, `${path}/versions`, ownerOf(skill));
  const diff = useRead(DiffSkillResponseSchema, `${path}:diff`, { ...ownerOf(skill), to_version: to });
  return (
    <>
      <ReadList
        label="versions"
        read={read}
        of={({ skills }) => skills}
        keyOf={({ version }) => String(version)}
        columns={[
          { title: 'Version', cell: (one) => <Link to={placeOfSkill(one, 'skills', one.version)}>{`version ${one.version}`}</Link> },
          { title: 'Status', cell: ({ status }) => <Status status={status} /> },
          { title: 'Origin', cell: ({ origin }) => origin },
          { title: 'Reason', prose: true, cell: ({ statusReason }) => statusReason },
          { title: 'Made', cell: ({ createTime }) => <When at={createTime} /> },
          {
            title: 'Changes',
            cell: ({ version }) => <Link to={hrefWith({ to: String(version) })}>{`show changes of ${version}`}</Link>,
          },
        ]}
        empty={<p>No version of this skill is visible to you.</p>}
      />
      <Loaded read={diff}>
        {({ fromVersion, toVersion, codeDiff, fieldsDiff }) => {
          const [from, until] = [fromVersion === 0 ? 'nothing' : `version ${fromVersion}`, `version ${toVersion}`];
          return (
            <>
              <h3>{`Code, from ${from} to ${until}`}</h3>
              <Diff diff={codeDiff} from={from} to={until} />
              <h3>Other fields</h3>
              <Diff diff={fieldsDiff} from={from} to={until} />
            </>
          );
        }}
      </Loaded>
    </>
  );
}

interface Decision {
  readonly verb: string;
  readonly title: string;
  readonly says: string;
}

const { ACTIVE, ARCHIVED, DEPRECATED, REJECTED } = SkillStatus;
const VERIFY: Decision = {
  verb: 'verify',
  title: 'Verify again',
  says: 'Runs all tests of this version again and renews its evidence.',
};
const ARCHIVE: Decision = { verb: 'archive', title: 'Archive', says: 'The version is hidden. It can be restored.' };

/** The gateway refuses these actions to keys without the role. */
function decisionsFor({ status }: Skill): Decision[] {
  if (status === ARCHIVED) return [{ verb: 'restore', title: 'Restore', says: 'The version gets its earlier status back.' }];
  if (status === ACTIVE)
    return [
      VERIFY,
      { verb: 'deprecate', title: 'Deprecate', says: 'The skill is no longer offered. Skills that call it still work.' },
      { verb: 'rollback', title: 'Roll back', says: 'The previously active version becomes active again.' },
      ARCHIVE,
    ];
  return status === REJECTED || status === DEPRECATED ? [VERIFY, ARCHIVE] : [];
}

function SkillDecisions({ skill }: { readonly skill: Skill }) {
  const [open, setOpen] = useState<Decision | null>(null);
  const [reason, setReason] = useState('');
  const act = useAct(async (api, { verb }: Decision) => {
    const body = {
      ...ownerOf(skill),
      request_id: requestId(),
      ...(verb === 'rollback' ? {} : { version: skill.version }),
      ...(verb === 'verify' ? {} : { reason }),
    };
    await api.call(SkillSchema, 'POST', `/v1/skills/${skillId(skill)}:${verb}`, { body });
    setOpen(null);
    setReason('');
  });
  const decisions = decisionsFor(skill);
  return (
    <>
      <div className="buttons">
        {decisions.map((decision) => (
          <Button key={decision.verb} text={decision.title} onPress={() => setOpen(decision)} />
        ))}
      </div>
      <Confirm
        title={`${open?.title ?? ''} ${skillId(skill)}, version ${skill.version}`}
        open={open !== null}
        onClose={() => setOpen(null)}
        yes={act.isPending ? 'Working…' : (open?.title ?? '')}
        tone="primary"
        act={act}
        onYes={() => open && act.mutate(open)}
      >
        <p>{open?.says}</p>
        {open?.verb !== 'verify' && (
          <label className="field">
            <span>Reason</span>
            <input value={reason} onChange={({ target }) => setReason(target.value)} />
          </label>
        )}
      </Confirm>
    </>
  );
}
