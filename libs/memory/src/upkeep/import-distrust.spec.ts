import { EtudeError } from '@etude/contracts/errors';
import type { Fact, Skill } from '@etude/contracts/memory';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { hasHiddenTests } from '@etude/domain/skills/content-digest';
import { chunksOf, documentOf, episodeOf, factOf, NEW_YEAR, SCOPE, skillOf, transitionOf } from '@etude/domain/testing/memory-records';
import { proofOf } from '@etude/domain/testing/skill-lives';
import { beforeEach, describe, expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { exportOf, linesOf } from '../../test/upkeep-samples.js';
import type { MemoryRecord, RecordStore } from '../record-store.js';
import { conversationId, conversationRecord, turnRecord } from '../layers/conversation-records.js';
import { chunkRecord, documentRecord } from '../layers/documents.js';
import { episodeRecord, noteRecords, transitionRecord } from '../layers/episodic-layer.js';
import { proceduralLayer } from '../layers/procedural-layer.js';
import { insertsOf } from '../layers/records.js';
import { factRecord } from '../layers/fact-records.js';
import { skillRecord } from '../layers/skill-records.js';
import { guardedStore } from './erasure-marks.js';
import type { ImportOptions } from './import-lines.js';
import type { Proposal, ProposeSkill } from './imported-record.js';
import type { MemoryUpkeep } from '../memory.js';
import { recordUpkeep } from './record-upkeep.js';

const DAY_MS = 86_400_000;
const HEADER = '{"etude":"memory","version":1,"tenant":"acme"}';
const ALL = { tenant: 'acme', agent: null };
const embedder = new LexicalEmbedder();

let now: number;
let store: RecordStore;
let upkeep: MemoryUpkeep;

beforeEach(open);

function open(): void {
  now = NEW_YEAR;
  store = guardedStore(modelStore());
  upkeep = recordUpkeep({ store, embedder, clock: { now: () => now } });
}

const write = async (...records: readonly MemoryRecord[]) => store.write('acme', await insertsOf(embedder, records));

const exported = () => exportOf({ upkeep });
const taken = (lines: readonly string[], options: ImportOptions = {}) => upkeep.importLines('acme', linesOf([HEADER, ...lines]), options);
const reasonsOf = async (...lines: readonly string[]) => (await taken(lines)).refused.map(({ reason }) => reason);

const DIGEST = 'd'.repeat(64);
const skillNow = async (name = 'sum_even') => (await proceduralLayer({ store, embedder, clock: { now: () => now } }).get(ALL, name))!;
const document = documentOf(['Set them.'], { title: 'Ships' });
const chunk = chunksOf(document, ['Set them.']).at(0)!;
const chat = conversationId(SCOPE, 'chat 1');
const conversation = { id: chat, scope: SCOPE, name: 'chat 1', title: '', turns: 1, createdAt: NEW_YEAR, updatedAt: NEW_YEAR };
const message = { role: 'user', name: 'Ann', text: 'Set the sails.', at: NEW_YEAR };
const turn = { ...message, id: `${chat}.0000000`, scope: SCOPE, conversation: chat, index: 0, previous: '', createdAt: NEW_YEAR };
const episode = episodeOf({ reflection: 'Look twice.', skillsUsed: ['a@2'] });
const RECORDS: readonly MemoryRecord[] = [
  transitionRecord(transitionOf()),
  episodeRecord(episode),
  ...noteRecords(episode),
  factRecord(factOf(), ['w1']),
  factRecord(factOf({ id: 'fact-2', text: 'It ended with none.', validTo: NEW_YEAR, supersededBy: 'fact-1' }), []),
  documentRecord(document, DIGEST),
  chunkRecord(document, DIGEST, chunk),
  conversationRecord(conversation, ['w2 0']),
  turnRecord(turn),
  skillRecord(skillOf({ status: 'active', proof: proofOf(skillOf()) }), []),
  skillRecord(skillOf({ status: 'archived', version: 2 }), []),
];

const parsed = (line: string) => JSON.parse(line) as unknown;

/** A line as `exportLines` writes it. */
function lineOf({ scope: { agent, user }, ...record }: MemoryRecord, change: object = {}): string {
  return JSON.stringify({ ...record, agent, user, ...change });
}

const chunkLine = (change: object) => lineOf(chunkRecord(document, DIGEST, chunk), change);
const factLine = (change: Partial<Fact>) => lineOf(factRecord(factOf(change), []));
const skillLines = (...skills: readonly Skill[]) => skills.map((skill) => lineOf(skillRecord(skill, [])));
const signedWith = (name: string, signature: string) => skillOf({ name, status: 'active', proof: proofOf(skillOf(), { signature }) });
describe('an import of lines', () => {
  it('is lossless for records of every kind, archived ones too', async () => {
    await write(...RECORDS);
    now += 90 * DAY_MS;
    const before = await exported();
    expect(await upkeep.archive({ tenant: 'acme' }, { scoreMax: 1 }, { dryRun: false })).toMatchObject({ archived: 6 });
    const archived = await exported();
    for (const lines of [before, archived]) {
      open();
      now += 90 * DAY_MS;
      expect(await taken(lines.slice(1))).toMatchObject({ added: RECORDS.length, refused: [] });
      expect((await exported()).toSorted()).toEqual(lines.toSorted());
    }
    expect(await upkeep.restore({ tenant: 'acme' })).toBe(6);
    expect((await exported()).map(parsed)).toEqual(before.map(parsed));
  });

  it('refuses a chunk without a valid digest or document name', async () => {
    const reasons = await reasonsOf(chunkLine({ fields: { id: 'c1' } }), chunkLine({ sources: [] }));
    expect(reasons).toEqual(['fields.digest: has to be 64 hexadecimal digits', 'sources: has to be the name of its document']);
    expect(await upkeep.findErased({ tenant: 'acme' })).toEqual({});
  });

  it('refuses conversations and turns under an id that another place or name has', async () => {
    const lines = [conversationRecord({ ...conversation, name: 'chat 2' }, []), turnRecord({ ...turn, index: 1 })].map((one) =>
      lineOf(one),
    );
    expect(await reasonsOf(...lines)).toEqual([
      'body.value.id: has to follow from owner and name',
      'body.value.id: has to follow from conversation and index',
    ]);
  });

  it('derives key, fields and visibility from the body alone', async () => {
    const skill = skillRecord(skillOf(), []);
    const fields = { ...skill.fields, name: 'other', status: 'active' };
    expect(await taken([lineOf(skill, { key: 'zzz', shown: true, fields })])).toMatchObject({ added: 1, refused: [] });
    expect(await store.load(ALL, 'procedural', 'skill', ['zzz', skill.key])).toMatchObject([skill]);
  });
});

describe('an imported skill', () => {
  it.each(['active', 'verified', 'pending_review'] as const)('is %s only with a proof for its content', async (status) => {
    const forged = [undefined, proofOf(skillOf({ code: 'other' })), proofOf(skillOf(), { digest: 'f'.repeat(64) })];
    const wrongDigest = { name: 'wrong_digest', digest: 'f'.repeat(64), proof: proofOf(skillOf(), { digest: 'f'.repeat(64) }) };
    const claims = [
      ...forged.map((proof, i) => skillOf({ name: `s${i}`, status, ...(proof === undefined ? {} : { proof }) })),
      skillOf({ ...wrongDigest, status }),
    ];
    expect(await taken(skillLines(...claims))).toMatchObject({ added: 4, refused: [] });
    for (const { name } of claims) {
      expect(await skillNow(name)).toMatchObject({ status: 'candidate', statusReason: expect.stringContaining(`was ${status}`) as string });
      expect(await skillNow(name)).not.toHaveProperty('proof');
    }
  });

  it('is active only with a proof signed here, if a checker is given', async () => {
    upkeep = recordUpkeep({
      store,
      embedder,
      clock: { now: () => now },
      proofChecker: { isSigned: (_text, _id, sign) => sign === 'ours' },
    });
    await taken(skillLines(signedWith('ours', 'ours'), signedWith('forged', 'garbage')));
    expect([(await skillNow('ours')).status, (await skillNow('forged')).status]).toEqual(['active', 'candidate']);
  });

  it('calls skills of its new tenant', async () => {
    const pin = { name: 'parse', tenant: 'beta', agent: 'coder', user: null, version: 1, digest: DIGEST };
    await taken(skillLines(skillOf({ dependencies: [pin, { ...pin, name: 'all', tenant: '@global', agent: '@tenant' }] })));
    expect((await skillNow()).dependencies?.map(({ tenant }) => tenant)).toEqual(['acme', '@global']);
  });
});

describe('a skill that an import proposes', () => {
  const proposed: Proposal[] = [];
  const proposeSkill: ProposeSkill = (proposal) => {
    proposed.push(proposal);
    return Promise.resolve('added');
  };
  const proposedBy = async (...skills: readonly Skill[]) => {
    proposed.length = 0;
    const report = await taken(skillLines(...skills), { proposeSkill });
    return { ...report, skills: proposed.map(({ skill }) => skill) };
  };

  it('has the import as a source, the same for the same lines, and no solved tasks', async () => {
    const skills = [skillOf({ name: 'a', examplePrompts: ['Sum it.'] }), skillOf({ name: 'b', untrusted: ['it was told'] })];
    const first = await proposedBy(...skills);
    expect(first.skills.map(({ name, cues, fingerprints, untrusted }) => ({ name, cues, fingerprints, untrusted }))).toEqual([
      { name: 'a', cues: ['Sum it.'], fingerprints: [], untrusted: undefined },
      { name: 'b', cues: [], fingerprints: [], untrusted: ['it was told'] },
    ]);
    const sources = first.skills.map((skill) => skill.sources);
    expect(sources[0]).toEqual(['tasks/tabcdefgh', expect.stringMatching(/^imports\/i[0-9a-f]{32}$/)]);
    expect(sources[1]).toEqual(sources[0]);
    expect((await proposedBy(...skills)).skills.map((skill) => skill.sources)).toEqual(sources);
    expect((await proposedBy(...skills.slice(1))).skills[0]?.sources).not.toEqual(sources[0]);
  });

  it('comes in the order of versions, and is set aside if its source had it out of use', async () => {
    const versions = (['deprecated', 'active', 'archived', 'rejected'] as const).map((status, i) =>
      skillOf({ version: i + 1, status, statusReason: status === 'archived' ? 'harmful' : '', code: `def total(xs): return ${i}` }),
    );
    expect(await proposedBy(...versions.toReversed())).toMatchObject({ added: 4 });
    expect(proposed.map(({ skill, setAside }) => [skill.code.at(-1), setAside])).toEqual([
      ['0', 'imported; was deprecated where it came from'],
      ['1', null],
      ['2', 'imported; was archived where it came from: harmful'],
      ['3', 'imported; was rejected where it came from'],
    ]);
  });

  it('was never run and has no history', async () => {
    const usage = { offered: 9, used: 9, fellBack: 0, lastUsedAt: NEW_YEAR, failures: [], outputs: [], nondeterministic: false };
    const history = [{ at: NEW_YEAR, by: 'the boss', from: null, to: 'active', reason: 'approved' }] as const;
    const said = skillOf({ executionCount: 1_000_000, successRate: 0.99, usage, history: [...history], origin: 'person' });
    const { skills } = await proposedBy(said);
    expect(skills).toMatchObject([{ executionCount: 0, successRate: 1, origin: 'import', status: 'candidate' }]);
    for (const name of ['usage', 'history', 'proof']) expect(skills[0]).not.toHaveProperty(name);
  });

  it('keeps tests hidden that were made from tasks', async () => {
    const { skills } = await proposedBy(skillOf({ name: 'learned', origin: 'rollout' }), skillOf({ name: 'told', origin: 'person' }));
    expect(skills.map((skill) => [skill.name, skill.origin, hasHiddenTests(skill)])).toEqual([
      ['learned', 'import', true],
      ['told', 'import', false],
    ]);
  });

  it('is refused with its line if registering it is refused', async () => {
    const denied = new EtudeError('PERMISSION_DENIED', 'only reviewers may');
    expect(await taken(skillLines(skillOf()), { proposeSkill: () => Promise.reject(denied) })).toMatchObject({
      added: 0,
      refused: [{ line: 2, reason: 'only reviewers may' }],
    });
    const gone = new EtudeError('QUEUE_UNAVAILABLE', 'nobody answers');
    await expect(taken(skillLines(skillOf()), { proposeSkill: () => Promise.reject(gone) })).rejects.toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
    });
  });
});

describe('numbers of an import', () => {
  it('must be times from 1970 to a day from now', async () => {
    const reason = 'has to be a time in ms since 1970, at most a day from now';
    expect(
      await reasonsOf(
        factLine({ createdAt: Number.MAX_SAFE_INTEGER }),
        factLine({ createdAt: -1 }),
        factLine({ validFrom: NEW_YEAR + DAY_MS + 1 }),
        factLine({ validTo: Number.MAX_SAFE_INTEGER }),
        factLine({ updatedAt: -1 }),
      ),
    ).toEqual(['createdAt', 'createdAt', 'validFrom', 'validTo', 'updatedAt'].map((name) => `${name}: ${reason}`));
    expect(await taken([factLine({ createdAt: NEW_YEAR + DAY_MS })])).toMatchObject({ added: 1 });
  });
});
