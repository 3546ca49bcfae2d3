import { type Skill, SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { useState } from 'react';
import { requestId } from '../api/client.js';
import { useAct } from '../api/hooks.js';
import { Confirm } from '../ui/dialog.js';
import { ownerOf, skillId } from './skill-words.js';

interface Decision {
  readonly verb: string;
  readonly title: string;
  readonly says: string;
}

const { ACTIVE, ARCHIVED, DEPRECATED, REJECTED } = SkillStatus;
const VERIFY: Decision = {
  verb: 'verify',
  title: 'Verify again',
  says: 'All tests of this version are run again, and its evidence is renewed.',
};
const ARCHIVE: Decision = { verb: 'archive', title: 'Archive', says: 'The version is hidden. It can be restored.' };

/** The moves that a status allows. The gateway refuses them to keys without the role. */
function decisionsFor({ status }: Skill): Decision[] {
  if (status === ARCHIVED) return [{ verb: 'restore', title: 'Restore', says: 'The version gets back the status that it had.' }];
  if (status === ACTIVE)
    return [
      VERIFY,
      { verb: 'deprecate', title: 'Deprecate', says: 'The skill is not offered any more. Its callers keep it.' },
      { verb: 'rollback', title: 'Roll back', says: 'The version that was active before becomes active again.' },
      ARCHIVE,
    ];
  return status === REJECTED || status === DEPRECATED ? [VERIFY, ARCHIVE] : [];
}

/** Moves along a skill's life, each asked once more with a reason. */
export function SkillDecisions({ skill }: { readonly skill: Skill }) {
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
          <button key={decision.verb} type="button" onClick={() => setOpen(decision)}>
            {decision.title}
          </button>
        ))}
      </div>
      <Confirm
        title={`${open?.title ?? ''} ${skillId(skill)}, version ${skill.version}`}
        open={open !== null}
        onClose={() => setOpen(null)}
        yes={act.isPending ? 'Working…' : open?.title}
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
