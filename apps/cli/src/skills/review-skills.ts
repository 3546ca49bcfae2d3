import { randomUUID } from 'node:crypto';
import { toJson } from '@bufbuild/protobuf';
import { type Skill, SkillReviewSchema, SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { type Cli, commandLine, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { callSettings } from '../sandbox/manage-sandboxes.js';
import { ridingOut } from '../sandbox/ride-out.js';
import { colouredDiff } from './colour-diff.js';
import { diffText } from './diff-skills.js';
import { rollbackError } from './skill-hints.js';
import { bareName, doneLine, reviewText, scopeOf, type ScopeWord, versionWords } from './skill-lines.js';
import { type ReaderOptions, skillReference, wholeSkill } from './skill-reference.js';

export interface DecisionOptions extends ReaderOptions {
  readonly reason?: string;
  readonly requestId?: string;
}

export function reviewSkill(cli: Cli, skill: string, reader: ReaderOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const review = await gateway.skills.getSkillReview(skillReference(skill, reader), callSettings(cli));
    const diff = review.diff === undefined ? '' : diffText(review.diff);
    if (cli.out.json || !process.stdout.isTTY) cli.out.data(toJson(SkillReviewSchema, review), reviewText(review, diff));
    else {
      cli.out.data({}, reviewText(review, ''));
      if (diff !== '') cli.out.stream('stdout', `\n${colouredDiff(diff)}\n`);
    }
    const found = review.skill;
    if (found?.status === SkillStatus.PENDING_REVIEW) {
      const named = versionWords(found);
      cli.out.note(`to approve it: ${commandLine(cli, `skills approve ${named} --digest ${found.digest}`)}`);
      cli.out.note(`or not: ${commandLine(cli, `skills reject ${named} --reason TEXT`)}`);
    }
    return EXIT.ok;
  });
}

/** What now calls it gets a version of its own that is pinned to this one; said, since nobody asked for those. */
async function noteCallers(cli: Cli, gateway: Gateway, { name, agent, user, version, status }: Skill): Promise<void> {
  if (status !== SkillStatus.ACTIVE) return;
  const { dependents } = await gateway.skills.getSkillReview({ name, agent, user, version }, callSettings(cli));
  const callers = [...new Set(dependents.map((caller) => bareName(caller.name)))];
  if (callers.length > 0) cli.out.note(`what calls it follows, each with a version that is verified first: ${callers.join(', ')}`);
}

/** A call that answers the skill as it is afterwards; a repeat after a broken connection is harmless. */
function decide(cli: Cli, call: (gateway: Gateway) => Promise<Skill>, andCallers = false): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const skill = await ridingOut(cli.signal, () => call(gateway));
    cli.out.data(toJson(SkillSchema, skill), doneLine(skill));
    if (andCallers) await noteCallers(cli, gateway, skill);
    return EXIT.ok;
  });
}

function decision(skill: string, { reason = '', requestId = randomUUID(), ...reader }: DecisionOptions) {
  return { ...skillReference(skill, reader), reason, requestId };
}

export interface ApproveOptions extends DecisionOptions {
  readonly digest?: string;
  readonly merge?: string;
}

/** @throws CliError without a digest, with the line that prints it */
export async function approveSkill(cli: Cli, skill: string, { digest, merge, ...options }: ApproveOptions): Promise<number> {
  const { reason: _reason, ...request } = decision(skill, options);
  if (digest === undefined) {
    const review = commandLine(cli, `skills review ${versionWords(request)}`);
    throw new CliError(EXIT.usage, 'the digest of what was reviewed is missing: --digest SHA256', [`${review} prints the whole line`]);
  }
  const merged = merge === undefined ? '' : wholeSkill(merge).name;
  return decide(cli, (gateway) => gateway.skills.approveSkill({ ...request, digest, merge: merged }, callSettings(cli)), true);
}

export function rejectSkill(cli: Cli, skill: string, options: DecisionOptions): Promise<number> {
  const request = decision(skill, options);
  return decide(cli, (gateway) => gateway.skills.rejectSkill(request, callSettings(cli)));
}

export async function rollbackSkill(
  cli: Cli,
  skill: string,
  { to = 0, ...options }: DecisionOptions & { readonly to?: number },
): Promise<number> {
  const { version, ...request } = decision(skill, options);
  try {
    return await decide(cli, (gateway) => gateway.skills.rollbackSkill({ ...request, toVersion: to || version }, callSettings(cli)), true);
  } catch (error) {
    throw rollbackError(error);
  }
}

export function deprecateSkill(
  cli: Cli,
  skill: string,
  { replacedBy, ...options }: DecisionOptions & { readonly replacedBy?: string },
): Promise<number> {
  const request = { ...decision(skill, options), replacedBy: replacedBy === undefined ? '' : wholeSkill(replacedBy).name };
  return decide(cli, (gateway) => gateway.skills.deprecateSkill(request, callSettings(cli)));
}

export function archiveSkill(cli: Cli, skill: string, options: DecisionOptions): Promise<number> {
  const request = decision(skill, options);
  return decide(cli, (gateway) => gateway.skills.archiveSkill(request, callSettings(cli)));
}

export function restoreSkill(cli: Cli, skill: string, options: DecisionOptions): Promise<number> {
  const request = decision(skill, options);
  return decide(cli, (gateway) => gateway.skills.restoreSkill(request, callSettings(cli)));
}

export function promoteSkill(
  cli: Cli,
  skill: string,
  { scope, ...options }: DecisionOptions & { readonly scope: ScopeWord },
): Promise<number> {
  const { reason: _reason, ...request } = decision(skill, options);
  return decide(cli, (gateway) => gateway.skills.promoteSkill({ ...request, scope: scopeOf(scope) }, callSettings(cli)));
}
