import { SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { FakeGateway, manifest, refusal } from '../src/testing/fake-gateway.js';
import { MODERN, REVISIONS } from '../src/testing/official-client.js';
import { connect } from './served.js';

const skill = (name: string, version = 1, status = SkillStatus.ACTIVE) => ({
  name,
  version,
  status,
  files: { 'SKILL.md': manifest(name, `What ${name} does`) },
});
const looksAt = ({ seen }: FakeGateway) => seen.filter(({ method, request }) => method === 'listSkills' && request['brief'] === true);
const looks = (gateway: FakeGateway) => looksAt(gateway).length;

async function listening(gateway: FakeGateway, revision: (typeof REVISIONS)[number]) {
  const client = await connect(gateway, 'stdio', revision, { options: { skillsEveryMs: 10 } });
  let told = 0;
  client.setNotificationHandler('notifications/resources/list_changed', () => void (told += 1));
  if (revision === MODERN) await client.listen({ resourcesListChanged: true });
  return { client, told: () => told };
}

/** Until it was looked twice more: once may have been under way. */
async function lookedAgain(gateway: FakeGateway): Promise<void> {
  const before = looks(gateway);
  await until(() => looks(gateway) >= before + 2);
}

describe.each(REVISIONS)('changes of skills over stdio in %s', (revision) => {
  it('are told to a client that has listed them, once each', async () => {
    const gateway = new FakeGateway();
    gateway.held = [skill('one')];
    const { client, told } = await listening(gateway, revision);
    expect(client.getServerCapabilities()?.resources?.listChanged).toBe(true);
    await new SkillsClient(client).list();
    await lookedAgain(gateway);
    expect(told()).toBe(0);
    gateway.held = [skill('one'), skill('two')];
    await until(() => told() === 1);
    gateway.held = [skill('one'), skill('two', 2)];
    await until(() => told() === 2);
    gateway.held = [...gateway.held, skill('three', 1, SkillStatus.PENDING_REVIEW)];
    await lookedAgain(gateway);
    expect(told()).toBe(2);
  });

  it('cost a client nothing that never lists any', async () => {
    const gateway = new FakeGateway();
    const { client } = await listening(gateway, revision);
    await client.listTools();
    await client.callTool({ name: 'echo', arguments: { text: 'x' } });
    expect(looks(gateway)).toBe(0);
  });

  it('are told when the gateway is back, and none because it was away', async () => {
    const gateway = new FakeGateway();
    gateway.held = [skill('one')];
    const { client, told } = await listening(gateway, revision);
    await new SkillsClient(client).list();
    await lookedAgain(gateway);
    gateway.refuse = refusal(14, 'away');
    await lookedAgain(gateway);
    gateway.refuse = null;
    await lookedAgain(gateway);
    expect(told()).toBe(0);
    gateway.held = [];
    await until(() => told() === 1);
  });

  it('are looked for no more once the connection is over', async () => {
    const [gateway, others] = [new FakeGateway(), new FakeGateway()];
    const [{ client }, { client: other }] = [await listening(gateway, revision), await listening(others, revision)];
    for (const one of [client, other]) await new SkillsClient(one).list();
    await lookedAgain(gateway);
    await client.close();
    await until(() => looksAt(gateway).at(-1)?.settings.signal?.aborted, { what: 'the end of the connection' });
    const before = looks(gateway);
    // What was due by then is due before the second look at these.
    await lookedAgain(others);
    expect(looks(gateway)).toBe(before);
  });
});

describe('changes of skills over HTTP', () => {
  it.each(REVISIONS)('are not claimed to be told in %s', async (revision) => {
    const client = await connect(new FakeGateway(), 'http', revision);
    expect(client.getServerCapabilities()?.resources?.listChanged).not.toBe(true);
    expect(client.getServerCapabilities()?.tools?.listChanged).not.toBe(true);
  });

  it('are acknowledged with nothing where a client asks for them', async () => {
    const client = await connect(new FakeGateway(), 'http', MODERN);
    const subscription = await client.listen({ resourcesListChanged: true, toolsListChanged: true });
    expect(subscription.honoredFilter).toEqual({});
    expect(await subscription.closed).toBe('graceful');
  });
});
