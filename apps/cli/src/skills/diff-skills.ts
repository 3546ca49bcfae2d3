import { toJson } from '@bufbuild/protobuf';
import { type DiffSkillResponse, DiffSkillResponseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { type Cli, withGateway } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { callSettings } from '../sandbox/manage-sandboxes.js';
import { colouredDiff } from './colour-diff.js';
import { type ReaderOptions, wholeSkill } from './skill-reference.js';

export interface DiffOptions extends ReaderOptions {
  readonly from?: number;
  readonly to?: number;
}

export function diffSkill(cli: Cli, skill: string, { from = 0, to = 0, ...reader }: DiffOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const request = { ...wholeSkill(skill, reader), fromVersion: from, toVersion: to };
    const diff = await gateway.skills.diffSkill(request, callSettings(cli));
    const text = diffText(diff);
    if (cli.out.json || !process.stdout.isTTY || text === '') cli.out.data(toJson(DiffSkillResponseSchema, diff), text);
    else cli.out.stream('stdout', `${colouredDiff(text)}\n`);
    if (text === '') cli.out.note(`versions ${diff.fromVersion} and ${diff.toVersion} are the same`);
    return EXIT.ok;
  });
}

export const diffText = ({ codeDiff, fieldsDiff }: Pick<DiffSkillResponse, 'codeDiff' | 'fieldsDiff'>): string =>
  [codeDiff, fieldsDiff]
    .map((diff) => diff.trimEnd())
    .filter((diff) => diff !== '')
    .join('\n\n');
