import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';

/** Who reads. */
export interface ReaderOptions {
  readonly agent?: string;
  readonly user?: string;
}

export interface SkillReference {
  /** "skills/sum_of_squares" */
  readonly name: string;
  /** 0: the newest, or what the call takes for it. */
  readonly version: number;
  readonly agent: string;
  readonly user: string;
}

/** @param text "NAME", "NAME@VERSION", with or without "skills/" before it */
export function skillReference(text: string, { agent = '', user = '' }: ReaderOptions = {}): SkillReference {
  const [, name = '', version = '0'] = /^(?:skills\/)?([^@/]+)(?:@([1-9][0-9]{0,8}))?$/.exec(text) ?? [];
  if (name === '')
    throw new CliError(EXIT.usage, `${JSON.stringify(text)} is no skill`, ['write NAME, or NAME@VERSION for one version of it']);
  return { name: `skills/${name}`, version: Number(version), agent, user };
}

/** One that no version can be said of. */
export function wholeSkill(text: string, reader: ReaderOptions = {}): Omit<SkillReference, 'version'> {
  const { version, ...skill } = skillReference(text, reader);
  if (version > 0) throw new CliError(EXIT.usage, `name the skill without a version: ${skill.name.replace('skills/', '')}`);
  return skill;
}
