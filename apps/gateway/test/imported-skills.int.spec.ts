import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { SkillVerify } from '@etude/contracts/queues';
import { skillOf } from '@etude/domain/testing/memory-records';
import { expect, it } from 'vitest';
import { collect, gatewayForFile } from './gateway.harness.js';
import { newSigner, storeSkill } from './skill-store.js';

const rig = gatewayForFile({ ETUDE_SKILLS_ENABLED: 'true', ETUDE_SKILLS_APPROVAL: 'automatic' });
const signer = newSigner(rig.dir);

const FROM = { tenant: 'acme', agent: 'teller', user: null };
const TO = 'importer';

/** The header of an export and the skills of `FROM`, as skills of `TO`. */
async function exported(): Promise<string[]> {
  const lines = (await collect(rig.client(Memory, 'rev').exportMemory({ agent: FROM.agent }))).flatMap((sent) => sent.lines);
  return lines.filter((line, i) => i === 0 || line.includes('"kind":"skill"')).map((line) => line.replaceAll(FROM.agent, TO));
}

it('requests verification again if the import before stopped midway', async () => {
  await storeSkill((await rig.openMemory()).procedural, skillOf({ status: 'active', name: 'plain', scope: FROM }), signer);
  const lines = await exported();
  await rig.client(Memory).importMemory({ lines });
  const jobs = rig.producer.queue(SkillVerify.name);
  const ofImport = async () =>
    (await jobs.getJobs(['waiting', 'prioritized'])).filter(({ data }) => JSON.stringify(data).includes(`"${TO}"`));
  const [lost] = await ofImport();
  await lost?.remove();
  expect(await ofImport()).toEqual([]);
  expect(await rig.client(Memory).importMemory({ lines })).toMatchObject({ unchanged: 1n, refused: [] });
  expect(await ofImport()).toHaveLength(1);
});
