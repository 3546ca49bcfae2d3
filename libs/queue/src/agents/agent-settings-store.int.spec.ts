import { errorCode } from '@etude/contracts/errors';
import { describe, expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { agentSettingsConfig, AgentSettingsStore, installationSettings } from './agent-settings-store.js';

const startQueue = queueForFile();
const INSTALLATION = installationSettings(agentSettingsConfig.parse({ ETUDE_SKILLS_ENABLED: 'on', ETUDE_SKILLS_MAX: '9' }));

function start() {
  const { redis, keys } = startQueue();
  return new AgentSettingsStore(redis, keys, INSTALLATION);
}

const codeOf = (work: Promise<unknown>) => work.then(() => 'none', errorCode);

describe('settings of agents', () => {
  it('keep all concurrent changes', async () => {
    const store = start();
    await Promise.all([
      store.update('acme', 'coder', { maxSkills: 4 }),
      store.update('acme', 'coder', { preferSkills: false }),
      store.update('acme', 'coder', { approvalMode: 'threshold' }),
    ]);
    expect((await store.get('acme', 'coder')).settings).toMatchObject({ maxSkills: 4, preferSkills: false, approvalMode: 'threshold' });
    const { etag } = await store.get('acme', 'coder');
    const same = [1, 2, 3].map((maxSkills) => codeOf(store.update('acme', 'coder', { maxSkills }, { etag })));
    expect((await Promise.all(same)).toSorted()).toEqual(['ABORTED', 'ABORTED', 'none']);
  });
});
