import { randomUUID } from 'node:crypto';
import { toJson } from '@bufbuild/protobuf';
import { type Skill, SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { type Cli, withGateway } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { firstLine, table } from '../output.js';
import { SCRIPTED, when } from '../tasks/task-lines.js';

const STATUSES = {
  candidate: SkillStatus.CANDIDATE,
  verified: SkillStatus.VERIFIED,
  pending_review: SkillStatus.PENDING_REVIEW,
  active: SkillStatus.ACTIVE,
  deprecated: SkillStatus.DEPRECATED,
  archived: SkillStatus.ARCHIVED,
  rejected: SkillStatus.REJECTED,
} as const;
export const SKILL_STATUSES = Object.keys(STATUSES) as readonly (keyof typeof STATUSES)[];

const PAGE_MAX = 1_000;
const skillResource = (skill: string) => (skill.startsWith('skills/') ? skill : `skills/${skill}`);
export const statusWord = (status: SkillStatus) => SkillStatus[status].toLowerCase();

export interface SkillListOptions {
  readonly agent?: string;
  readonly status?: keyof typeof STATUSES;
  readonly limit: number;
}

/** All pages up to `limit`. */
export async function fetchSkills(
  gateway: Gateway,
  { agent = '', status, limit }: SkillListOptions,
  call: { timeoutMs: number; signal: AbortSignal },
): Promise<Skill[]> {
  const skills: Skill[] = [];
  let pageToken = '';
  do {
    const request = {
      agent,
      pageToken,
      pageSize: Math.min(limit - skills.length, PAGE_MAX),
      ...(status ? { status: STATUSES[status] } : {}),
    };
    const page = await gateway.skills.listSkills(request, call);
    skills.push(...page.skills);
    pageToken = page.nextPageToken;
  } while (pageToken && skills.length < limit);
  return skills;
}

export function skillTable(skills: readonly Skill[]): string {
  const rows = skills.map(({ name, version, kind, status, executionCount, successRate, description, scripted }) => [
    name.replace('skills/', ''),
    String(version),
    kind,
    statusWord(status),
    String(executionCount),
    executionCount > 0n ? successRate.toFixed(2) : '-',
    [firstLine(description, 60), ...(scripted ? [SCRIPTED] : [])].join(' '),
  ]);
  return table([['SKILL', 'VERSION', 'KIND', 'STATUS', 'USES', 'RATE', 'DESCRIPTION'], ...rows]);
}

export function listSkills(cli: Cli, options: SkillListOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const skills = await fetchSkills(gateway, options, { timeoutMs: cli.callTimeoutMs, signal: cli.signal });
    cli.out.data({ skills: skills.map((skill) => toJson(SkillSchema, skill)) }, skills.length > 0 ? skillTable(skills) : '');
    if (skills.length === 0) cli.out.note('no skills');
    return EXIT.ok;
  });
}

function skillText(skill: Skill): string {
  const rows = [
    ['skill', `${skill.name} version ${skill.version}`],
    ['status', [statusWord(skill.status), skill.statusReason].filter(Boolean).join(': ')],
    ['kind', skill.entryPoint ? `${skill.kind}, entry point ${skill.entryPoint}` : skill.kind],
    ['agent', skill.agent],
    ['uses', skill.executionCount > 0n ? `${skill.executionCount}, success rate ${skill.successRate.toFixed(2)}` : '0'],
    ['tests', String(skill.testCount)],
    ['written by', [skill.model || '-', ...(skill.scripted ? [SCRIPTED] : [])].join(' ')],
    ['sources', skill.sources.join(', ') || '-'],
    ['updated', when(skill.updateTime)],
    ['digest', skill.digest],
  ];
  const evidence = skill.evidence.length > 0 ? [`evidence:\n${skill.evidence.map((line) => `  ${line}`).join('\n')}`] : [];
  return [table(rows), skill.description.trim(), ...evidence, `code:\n${skill.code.trimEnd()}`].join('\n\n');
}

export function showSkill(cli: Cli, skill: string): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const found = await gateway.skills.getSkill({ name: skillResource(skill) }, { timeoutMs: cli.callTimeoutMs, signal: cli.signal });
    cli.out.data(toJson(SkillSchema, found), skillText(found));
    return EXIT.ok;
  });
}

export function approveSkill(cli: Cli, skill: string, digest: string): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const request = { name: skillResource(skill), digest, requestId: randomUUID() };
    const approved = await gateway.skills.approveSkill(request, { timeoutMs: cli.callTimeoutMs, signal: cli.signal });
    cli.out.data(toJson(SkillSchema, approved), `${approved.name} is ${statusWord(approved.status)}`);
    return EXIT.ok;
  });
}
