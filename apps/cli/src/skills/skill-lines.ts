import {
  type DiffSkillResponse,
  type Skill,
  type SkillProof,
  type SkillReview,
  SkillScope,
  SkillStatus,
  type WantedSkill,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { type Cli, commandLine } from '../cli.js';
import { firstLine, plural, table } from '../output.js';
import { SCRIPTED, when } from '../tasks/task-lines.js';

export const statusWord = (status: SkillStatus) => SkillStatus[status].toLowerCase();

const SCOPES = { agent: SkillScope.AGENT, user: SkillScope.USER, tenant: SkillScope.TENANT, global: SkillScope.GLOBAL } as const;
export type ScopeWord = keyof typeof SCOPES;
export const SKILL_SCOPES: readonly ScopeWord[] = ['agent', 'user', 'tenant', 'global'];
export const scopeOf = (word: ScopeWord): SkillScope => SCOPES[word];

/** The command that shows the state of a skill that was asked for. */
export const wantedCommand = (name: string, user: string) => `skills wanted ${name}${user === '' ? '' : ` --user ${user}`}`;

/** "sum_of_squares" of "skills/sum_of_squares". */
export const bareName = (name: string) => name.replace(/^skills\//, '');

/** A version as commands take it, with whose it is; where it is 0, the skill without one. */
export const versionWords = ({ name, version, agent, user }: Pick<Skill, 'name' | 'version' | 'agent' | 'user'>) =>
  [
    quoted(version === 0 ? bareName(name) : `${bareName(name)}@${version}`),
    ...(agent === '' ? [] : ['--agent', quoted(agent)]),
    ...(user === '' ? [] : ['--user', quoted(user)]),
  ].join(' ');

const quoted = (word: string) => (/^[\w@.:+-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`);

/** Has a column for users where one of the skills is a user's. '' where there are none. */
export function skillTable(skills: readonly Skill[]): string {
  if (skills.length === 0) return '';
  const ofUsers = skills.some(({ user }) => user !== '');
  const rows = skills.map((skill) => [
    bareName(skill.name),
    String(skill.version),
    skill.agent || '-',
    ...(ofUsers ? [skill.user || '-'] : []),
    skill.kind,
    statusWord(skill.status),
    String(usesOf(skill)),
    usesOf(skill) > 0n ? skill.successRate.toFixed(2) : '-',
    [firstLine(skill.description, 60), ...(skill.scripted ? [SCRIPTED] : [])].join(' '),
  ]);
  return table([['SKILL', 'VERSION', 'AGENT', ...(ofUsers ? ['USER'] : []), 'KIND', 'STATUS', 'USES', 'RATE', 'DESCRIPTION'], ...rows]);
}

/** Those that succeeded, where nothing more was counted. */
const usesOf = ({ usedCount, executionCount }: Skill) => (usedCount > executionCount ? usedCount : executionCount);

/** One line for what a command has done to a skill. */
export const doneLine = ({ name, version, status, statusReason }: Skill) =>
  `${bareName(name)}@${version} is ${statusWord(status)}${statusReason === '' ? '' : `: ${firstLine(statusReason, 200)}`}`;

/** All of a skill, its code last. */
export function skillText(skill: Skill): string {
  return [table(skillRows(skill)), skill.description.trim(), ...skillParts(skill), `code:\n${skill.code.trimEnd()}`]
    .filter((part) => part !== '')
    .join('\n\n');
}

function skillRows(skill: Skill): string[][] {
  const rows: Array<[string, string]> = [
    ['skill', `${skill.name} version ${skill.version}${skill.displayName ? `, ${skill.displayName}` : ''}`],
    ['status', [statusWord(skill.status), skill.statusReason].filter(Boolean).join(': ')],
    ['kind', skill.entryPoint ? `${skill.kind}, entry point ${skill.entryPoint}` : skill.kind],
    ['agent', [skill.agent, ...(skill.user ? [`user ${skill.user}`] : []), SkillScope[skill.scope].toLowerCase()].join(', ')],
    ['category', skill.category],
    ['tags', skill.tags.join(', ')],
    ['uses', usesText(skill)],
    ['tests', String(skill.testCount)],
    ['calls', skill.dependencies.map(({ name, version }) => `${bareName(name)}@${version}`).join(', ')],
    ['packages', skill.packages.join(', ')],
    ['files', skill.files.join(', ')],
    ['replaced by', bareName(skill.replacedBy)],
    ['origin', skill.origin],
    ['written by', [skill.model || '-', ...(skill.scripted ? [SCRIPTED] : [])].join(' ')],
    ['sources', skill.sources.join(', ')],
    ['updated', when(skill.updateTime)],
    ['digest', skill.digest],
  ];
  return rows.filter(([, value]) => value !== '');
}

function usesText(skill: Skill): string {
  if (usesOf(skill) === 0n && skill.offeredCount === 0n) return '0';
  const counts = [
    `offered ${skill.offeredCount}`,
    `used ${usesOf(skill)}`,
    `succeeded ${skill.executionCount}`,
    `fell back ${skill.fellBackCount}`,
  ];
  const flag = skill.nondeterministic ? ['not deterministic'] : [];
  return [...counts, `success rate ${skill.successRate.toFixed(2)}`, ...flag].join(', ');
}

function skillParts(skill: Skill): string[] {
  const parameters = skill.parameters.map(
    ({ name, type, required, description }) =>
      `${name}${type ? `: ${type}` : ''}${required ? '' : ', optional'}${description ? `  ${description}` : ''}`,
  );
  const failures = skill.failures.map(({ time, input, error }) => `${when(time)} ${firstLine(input, 60)}: ${firstLine(error, 100)}`);
  const history = skill.history.map(
    ({ time, by, to, reason }) => `${when(time)} ${statusWord(to)} by ${by || '-'}${reason ? `: ${firstLine(reason, 120)}` : ''}`,
  );
  return [
    list('not trusted, so that somebody has to approve it', skill.untrusted),
    list('parameters', parameters),
    list('evidence', skill.evidence),
    skill.proof === undefined ? '' : proofText(skill.proof),
    list('failures', failures),
    list('history', history),
  ].filter((part) => part !== '');
}

export function list(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [`${title}:`, ...lines.map((line) => `  ${line}`)].join('\n');
}

export const findingLine = ({ severity, analyser, rule, line, message }: SkillProof['findings'][number]) =>
  `${severity} ${analyser} ${rule}${line > 0 ? ` line ${line}` : ''}: ${message}`;

function proofText(proof: SkillProof): string {
  const { testsPassed, heldOutPassed, mutantsMade, mutantsNoticed, mutantsSurvived, findings, kept, alike, confidence, keyId } = proof;
  const lines = [
    `verified ${when(proof.verifyTime)}, confidence ${confidence.toFixed(2)}, signed with key ${keyId}`,
    `${plural(testsPassed, 'test')} and ${plural(heldOutPassed, 'held-out test')} passed; ${mutantsNoticed} of ${plural(mutantsMade, 'mutant')} noticed`,
    ...mutantsSurvived.map((what) => `not noticed: ${what}`),
    ...findings.map(findingLine),
    ...kept.map(({ name, version }) => `the tests of ${bareName(name)}@${version} still pass`),
    ...alike.map(
      ({ name, version, similarity, passesTheirs, theyPass }) =>
        `like ${bareName(name)}@${version} (${similarity.toFixed(2)})${passesTheirs && theyPass ? ', each passes the tests of the other' : ''}`,
    ),
  ];
  return list('proof', lines);
}

export const diffText = ({ codeDiff, fieldsDiff }: Pick<DiffSkillResponse, 'codeDiff' | 'fieldsDiff'>): string =>
  [codeDiff.trimEnd(), fieldsDiff.trimEnd()].filter(Boolean).join('\n\n');

/** Everything that a reviewer needs, with the diff last. */
export function reviewText({ skill, tests, heldOutCount, similar, dependents, diff }: SkillReview): string {
  if (skill === undefined) return '';
  const parts = [
    skillText(skill),
    list(`tests (${tests.length}, and ${heldOutCount} held out)`, tests),
    list(
      'similar skills',
      similar.flatMap(({ skill: other, similarity }) =>
        other === undefined
          ? []
          : [`${bareName(other.name)}@${other.version}, ${similarity.toFixed(2)}: ${firstLine(other.description, 60)}`],
      ),
    ),
    list(
      'called by',
      dependents.map(({ name, version }) => `${bareName(name)}@${version}`),
    ),
    diff === undefined ? '' : diffText(diff),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

/** Says what comes next for a skill that was handed in. */
export function nextNotes(cli: Cli, skill: Skill): string[] {
  const named = versionWords(skill);
  if (skill.status === SkillStatus.CANDIDATE) return [`it is verified next; ${commandLine(cli, `skills get ${named}`)} tells how it went`];
  if (skill.status === SkillStatus.PENDING_REVIEW) return [`a reviewer decides: ${commandLine(cli, `skills review ${named}`)}`];
  return skill.status === SkillStatus.REJECTED ? failureNotes(skill.statusReason) : [];
}

/** Says what mends a verification that failed, where the command line can tell. */
export const failureNotes = (reason: string): string[] =>
  /ModuleNotFoundError|No module named/.test(reason) ? ['if it is a package, say that it is needed with --package NAME==VERSION'] : [];

/** Has a column for the reason where one of the wishes has one. '' where there are none. */
export function wantedTable(all: readonly WantedSkill[]): string {
  if (all.length === 0) return '';
  const hasReasons = all.some(({ reason }) => reason !== '');
  const rows = all.map(({ name, skill, agent, user, state, reason, asked, description, scripted }) => [
    name,
    bareName(skill),
    [agent || '-', ...(user ? [user] : [])].join('/'),
    state,
    String(asked),
    [firstLine(description, 60), ...(scripted ? [SCRIPTED] : [])].join(' '),
    ...(hasReasons ? [firstLine(reason, 200) || '-'] : []),
  ]);
  return table([['WANTED', 'SKILL', 'AGENT', 'STATE', 'ASKED', 'DESCRIPTION', ...(hasReasons ? ['REASON'] : [])], ...rows]);
}

export function wantedText(wanted: WantedSkill): string {
  const rows: Array<[string, string]> = [
    ['wanted', wanted.name],
    ['skill', bareName(wanted.skill)],
    ['state', [wanted.state, wanted.reason].filter(Boolean).join(': ')],
    ['asked', plural(wanted.asked, 'time')],
    ['priority', String(wanted.priority)],
    ['agent', [wanted.agent || '-', ...(wanted.user ? [`user ${wanted.user}`] : [])].join(', ')],
    ['came of it', [bareName(wanted.registeredSkill), ...(wanted.scripted ? [SCRIPTED] : [])].join(' ').trim()],
    ['created', when(wanted.createTime)],
    ['description', firstLine(wanted.description, 200)],
  ];
  return table(rows.filter(([, value]) => value !== ''));
}
