import { DiffSkillResponseSchema, ListSkillVersionsResponseSchema, type Skill } from '@etude/contracts/gen/etude/v1/skills_pb';
import { useRead } from '../api/hooks.js';
import { Diff } from '../ui/diff.js';
import { List } from '../ui/list.js';
import { hrefWith, Link, useQueryValue } from '../ui/router.js';
import { Loaded } from '../ui/states.js';
import { When } from '../ui/text.js';
import { ownerOf, placeOfSkill, skillId, Status } from './skill-words.js';

/** All versions, and what changed in the chosen one. */
export function Versions({ skill }: { readonly skill: Skill }) {
  const [chosen] = useQueryValue('to');
  const to = Number(chosen) || skill.version;
  const path = `/v1/skills/${skillId(skill)}`;
  const read = useRead(ListSkillVersionsResponseSchema, `${path}/versions`, ownerOf(skill));
  const diff = useRead(DiffSkillResponseSchema, `${path}:diff`, { ...ownerOf(skill), to_version: to });
  return (
    <>
      <Loaded read={read}>
        {({ skills }) => (
          <List
            label="versions"
            items={skills}
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
            empty={<p>There is no version that you may see.</p>}
          />
        )}
      </Loaded>
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
