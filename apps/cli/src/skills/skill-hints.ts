import { type Skill, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { type Cli, commandLine } from '../cli.js';
import { CliError } from '../cli-error.js';
import type { Draft } from './skill-draft.js';
import { versionWords } from './skill-lines.js';

/** What comes next for a skill that was handed in. */
export function noteNext(cli: Cli, skill: Skill): void {
  const named = versionWords(skill);
  if (skill.status === SkillStatus.CANDIDATE)
    cli.out.note(`it is verified next; ${commandLine(cli, `skills get ${named}`)} tells how it went`);
  if (skill.status === SkillStatus.PENDING_REVIEW) cli.out.note(`a reviewer decides: ${commandLine(cli, `skills review ${named}`)}`);
  const hint = failureHint(skill.statusReason);
  if (skill.status === SkillStatus.REJECTED && hint !== '') cli.out.note(hint);
}

/** What to do about a verification that failed, where the command line can tell; else ''. */
export const failureHint = (reason: string): string =>
  /ModuleNotFoundError|No module named/.test(reason) ? 'if it is a package, say that it is needed with --package NAME==VERSION' : '';

/** The error of a draft that was refused, with the flag that would help. */
export function draftError(error: unknown, { tests = [], isProgram = false }: Pick<Draft, 'tests' | 'isProgram'>): unknown {
  if (!(error instanceof CliError) || error.code !== 'INVALID_ARGUMENT' || isProgram) return error;
  const runsProgram = tests.some(({ test }) => test?.case === 'program');
  const isCalled = [error.message, ...error.hint].some((line) => line.includes('this is the function'));
  if (!runsProgram || !isCalled) return error;
  return again(error, error.message, [...error.hint, 'code that reads stdin and writes stdout is added with --program']);
}

/** The error of a rollback, in the words of the flags. */
export function rollbackError(error: unknown): unknown {
  if (!(error instanceof CliError) || !error.message.includes('to_version')) return error;
  const hint = error.hint.filter((line) => line !== 'field: to_version');
  return again(error, error.message.replaceAll('to_version', '--to'), hint);
}

const again = (error: CliError, message: string, hint: readonly string[]) =>
  new CliError(error.exit, message, hint, { cause: error, ...(error.code === null ? {} : { code: error.code }) });
