import { type Skill, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { poll } from '../calls.js';
import { type Cli, commandLine } from '../cli.js';
import type { Flags } from '../command.js';
import { EXIT, type ExitCode } from '../errors.js';
import { firstLine } from '../output.js';
import { bareName } from '../show.js';

/** Timeout of calls that verify skills, in ms. They run tests, mutants and the tests of other skills. */
export const VERIFY_TIMEOUT_MS = 120_000;

export const READER: Flags = {
  '--agent <name>': 'show skills as this agent sees them',
  '--user <name>': "include this user's skills",
};
export const OWNER: Flags = {
  '--agent <name>': 'agent that owns the skill (default: default)',
  '--user <name>': 'user that owns it',
};
export const SCOPE: Flags = { '--scope <scope>': 'readers of the skill (default: agent)' };

export const SKILL_COLUMNS = ['name', 'version', 'agent', 'kind', 'status', 'user', 'used_count', 'success_rate', 'description'];

const UNSETTLED: ReadonlySet<SkillStatus> = new Set([SkillStatus.CANDIDATE, SkillStatus.VERIFIED]);

/** Polls until all skills are verified, for at most two minutes. Returns the last answer. */
export async function settledSkills(cli: Cli, ask: () => Promise<readonly Skill[]>): Promise<Skill[]> {
  const until = performance.now() + VERIFY_TIMEOUT_MS;
  const skills = await poll(cli, await ask(), {
    isOver: (now) => performance.now() > until || !now.some(({ status }) => UNSETTLED.has(status)),
    ask,
    status: () => 'verifying …',
  });
  return [...skills];
}

/** The arguments that name a skill's version and owner in a command. Version 0 means no version. */
export const versionWords = ({ name, version, agent, user }: Pick<Skill, 'name' | 'version' | 'agent' | 'user'>) =>
  [
    version === 0 ? bareName(name) : `${bareName(name)}@${version}`,
    ...(agent === '' ? [] : ['--agent', agent]),
    ...(user === '' ? [] : ['--user', user]),
  ].join(' ');

export const wantedCommand = (name: string, user: string) => `skills wish ${name}${user === '' ? '' : ` --user ${user}`}`;

export const doneLine = ({ name, version, status, statusReason }: Skill) =>
  `${bareName(name)}@${version} is ${SkillStatus[status].toLowerCase()}${statusReason === '' ? '' : `: ${firstLine(statusReason, 200)}`}`;

export function nextNotes(cli: Cli, skill: Skill): string[] {
  const named = versionWords(skill);
  if (skill.status === SkillStatus.CANDIDATE) return [`verification is next; ${commandLine(cli, `skills get ${named}`)} shows the result`];
  return skill.status === SkillStatus.PENDING_REVIEW ? [`a reviewer decides: ${commandLine(cli, `skills review ${named}`)}`] : [];
}

const isRejected = ({ status }: Skill) => status === SkillStatus.REJECTED;

export const handedInExit = (skills: readonly Skill[]): ExitCode =>
  skills.length === 0 || skills.some(isRejected) ? EXIT.failed : EXIT.ok;
